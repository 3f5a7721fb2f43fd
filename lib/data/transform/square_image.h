// SPDX-License-Identifier: Apache-2.0
// The row of a batch while it is varied: a square image of bytes, in place.
#pragma once

#include <cstdint>

namespace stoker::data {

/// Borrowed pixels, uint8 [side, side, channels].
struct SquareImage {
  uint8_t* pixels = nullptr;
  int side = 0;      ///< pixels
  int channels = 0;  ///< 1 (gray) or 3 (RGB)

  int64_t area() const { return int64_t{side} * side; }
  int64_t bytes() const { return area() * channels; }
  int64_t row_bytes() const { return int64_t{side} * channels; }
};

}  // namespace stoker::data
