// SPDX-License-Identifier: Apache-2.0
// JPEG as libjpeg decodes it when nothing is cut short or sped up: what the gate's pixels are compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker::fuzz {

struct PlainImage {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  ///< HWC, rows packed
};

/// Decodes to 1 or 3 channels. False for an error, for any warning, and for images of inks (CMYK).
bool decode_plainly(const uint8_t* bytes, size_t size, int channels, PlainImage& image);

}  // namespace stoker::fuzz
