// SPDX-License-Identifier: Apache-2.0
// Bytes as BIWI's two text files, a frame's pose and the camera, a NUL byte between them: finite angles and a face that
// is empty or a finite box, or a reason.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "data/dataset/head_pose_file.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace stoker::data;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const size_t end = std::min(text.find('\0'), size);
  HeadPose pose;
  ColourCamera camera;
  if (parse_biwi_camera(text.substr(std::min(end + 1, size)), camera).empty()) {
    FUZZ_CHECK(camera.focal_x > 0 && camera.focal_y > 0);
    for (const double value : camera.rotation) FUZZ_CHECK(std::isfinite(value));
    for (const double value : camera.translation) FUZZ_CHECK(std::isfinite(value));
  }
  if (!parse_biwi_pose(text.substr(0, end), pose).empty()) return 0;
  for (const float angle : pose.angles) FUZZ_CHECK(std::abs(angle) <= 180.001F);
  const RegionOfInterest face = biwi_head_box(pose.place, camera, /*margin=*/0.2);
  FUZZ_CHECK(face.width >= 0 && face.height >= 0);
  for (const double value : {face.left, face.top, face.width, face.height}) FUZZ_CHECK(std::isfinite(value));
  return 0;
}
