// SPDX-License-Identifier: Apache-2.0
// The row of a batch while it is varied: an image of bytes, in place.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker::data {

/// Borrowed pixels, uint8 [height, width, channels].
struct PixelImage {
  uint8_t* pixels = nullptr;
  int height = 0, width = 0;  ///< pixels
  int channels = 0;           ///< 1 (gray) or 3 (RGB)

  int short_side() const { return std::min(height, width); }
  int64_t area() const { return int64_t{height} * width; }
  int64_t bytes() const { return area() * channels; }
  int64_t row_bytes() const { return int64_t{width} * channels; }
};

}  // namespace stoker::data
