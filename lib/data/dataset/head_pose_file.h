// SPDX-License-Identifier: Apache-2.0
// The annotation files of public head pose data: angles in degrees, and where the face is.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "data/source.h"

namespace stoker::data {

struct HeadPose {
  std::array<float, 3> angles{};  ///< yaw, pitch, roll in degrees
  std::array<double, 3> place{};  ///< BIWI: the head's centre before the depth camera, millimetres; right, down, away
  RegionOfInterest face;
};

/// BIWI's colour camera: a pinhole that is `translation` and `rotation` away from the depth camera. The defaults are
/// the Kinect's of the published recordings, 640 x 480 pixels.
struct ColourCamera {
  double focal_x = 517.679, focal_y = 517.679;  ///< pixels
  double centre_x = 320, centre_y = 240.5;      ///< pixels
  std::array<double, 9> rotation{0.999947,  0.00432361, 0.00929419, -0.00446314, 0.999877,
                                 0.0150443, -0.009228,  -0.015085,  0.999844};  ///< row by row, depth to colour
  std::array<double, 3> translation{-24.0198, 5.8896, -13.2308};                ///< millimetres, after the rotation
};

/// BIWI's frame_*_pose.txt: a rotation matrix in three rows, then the head's place. Angles are those that Ruiz et
/// al. 2018 compare with: of the transposed matrix R, roll = -atan2(R10, R00), yaw = -atan2(-R20, sqrt(R21^2 +
/// R22^2)), pitch = atan2(R21, R22). The face stays empty. Returns "" or what is wrong.
std::string parse_biwi_pose(std::string_view text, HeadPose& pose);

/// BIWI's rgb.cal, lines of numbers: the intrinsic matrix (3 lines), distortion (not used), rotation (3 lines),
/// translation, size of the image (not used). Returns "" or what is wrong.
std::string parse_biwi_camera(std::string_view text, ColourCamera& camera);

/// A square around the image of a head at `place`: 200 mm wide there (a head is about 150 x 230 mm), widened by
/// `margin` of that to each side. Empty for a head that is not before the camera, or too far away for
/// numbers.
RegionOfInterest biwi_head_box(const std::array<double, 3>& place, const ColourCamera& camera, double margin);

/// The .mat at `path` beside an image of 300W-LP or AFLW2000: Pose_Para holds pitch, yaw and roll in radians first;
/// pt2d holds landmarks, x in the first row and y in the second, whose box is widened by `margin` of its size
/// to each side. Landmarks at -1 are unknown. Returns "" or what is wrong; throws as MatFile::open does.
std::string read_300w_pose(const std::string& path, double margin, HeadPose& pose);

}  // namespace stoker::data
