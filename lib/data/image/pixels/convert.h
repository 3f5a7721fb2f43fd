// SPDX-License-Identifier: Apache-2.0
// Changes of the meaning or order of 8-bit pixels.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::data {

/// ITU-R BT.601 luma, rounded, in 16-bit fixed point.
inline uint8_t luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

/// Packed pixels of `from` channels (1 or 3) into `out` with `to` channels (1 or 3): gray repeats, RGB
/// becomes luma.
void convert_channels(const uint8_t* pixels, int64_t count, int from, int to, std::vector<uint8_t>& out);

}  // namespace stoker::data
