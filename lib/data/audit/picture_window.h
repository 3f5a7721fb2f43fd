// SPDX-License-Identifier: Apache-2.0
// A part of a picture, perhaps seen in a mirror: what somebody may have made a copy of.
#pragma once

#include <array>
#include <vector>

namespace stoker::data {

/// In shares of the picture's width and height; [0, 1] is all of it.
struct PictureWindow {
  float left = 0, right = 1, top = 0, bottom = 1;
  bool mirrored = false;  ///< the picture is mirrored left to right first
};

/// Parts of one axis that copies are looked for in: all of it, and crops of 5 and 10 per cent, at either end or in the
/// middle.
inline constexpr std::array<std::array<float, 2>, 7> kWindowsOfAnAxis = {
    {{0, 1}, {0, 0.95f}, {0.05f, 1}, {0.025f, 0.975f}, {0, 0.9f}, {0.1f, 1}, {0.05f, 0.95f}}};

}  // namespace stoker::data
