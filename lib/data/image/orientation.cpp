// SPDX-License-Identifier: Apache-2.0
#include "data/image/orientation.h"

#include <algorithm>
#include <utility>

namespace stoker::data {

void apply_orientation(int orientation, ImageBuffer& image) {
  if (orientation <= 1 || orientation > 8) return;
  const int width = image.width, height = image.height, channels = image.channels;
  const bool swaps_axes = orientation >= 5;
  const int out_width = swaps_axes ? height : width, out_height = swaps_axes ? width : height;
  // EXIF 2.3, tag 0x0112: which side of the scene the stored row 0 and column 0 show.
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  ScratchBytes turned(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels));
  uint8_t* out = turned.data();
  for (int y = 0; y < out_height; ++y) {
    for (int x = 0; x < out_width; ++x, out += channels) {
      const int along_row = swaps_axes ? y : x, along_column = swaps_axes ? x : y;
      const int64_t row = from_bottom ? height - 1 - along_column : along_column;
      const int64_t column = from_right ? width - 1 - along_row : along_row;
      std::copy_n(image.pixels.data() + (row * width + column) * channels, channels, out);
    }
  }
  image.pixels = std::move(turned);
  image.width = out_width;
  image.height = out_height;
}

}  // namespace stoker::data
