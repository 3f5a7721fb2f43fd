// SPDX-License-Identifier: Apache-2.0
// What the annotation files of public head pose data say: angles in degrees, and where the face is. Knows
// nothing of folders or images.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/face_box.h"

namespace stoker::data {

struct HeadPose {
  std::array<float, 3> angles{};  ///< yaw, pitch, roll in degrees
  FaceBox face;
};

/// BIWI's frame_*_pose.txt: a rotation matrix in three rows, then the head's place, which is not used. Angles
/// are those that Ruiz et al. 2018 compare with: of the transposed matrix R, roll = -atan2(R10, R00), yaw =
/// -atan2(-R20, sqrt(R21^2 + R22^2)), pitch = atan2(R21, R22). Returns "" or what is wrong.
std::string parse_biwi_pose(std::string_view text, HeadPose& pose);

/// The .mat beside an image of 300W-LP or AFLW2000: Pose_Para holds pitch, yaw and roll in radians first;
/// pt2d holds landmarks, x in the first row and y in the second, whose box is widened by `margin` of its size
/// to each side. Landmarks at -1 are unknown. Returns "" or what is wrong.
std::string parse_300w_pose(const uint8_t* bytes, uint64_t size, double margin, HeadPose& pose);

}  // namespace stoker::data
