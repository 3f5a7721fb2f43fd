// SPDX-License-Identifier: Apache-2.0
// PNG, BMP, WebP and TIFF through OpenCV. Only called with bytes whose format and size have been looked at.
#pragma once

#include <cstdint>
#include <string>

#include "data/image/decode.h"

namespace stoker::data {

/// Decodes as stored, then gives the pixels their meaning: 16-bit / 257, alpha over black, gray <-> RGB.
/// `header` is what read_header() said. Returns "" or the reason.
std::string decode_with_opencv(const uint8_t* bytes, uint64_t size, const ImageHeader& header, int channels,
                               ImageBuffer& out);

}  // namespace stoker::data
