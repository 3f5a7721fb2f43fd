// SPDX-License-Identifier: Apache-2.0
// Writing PNG files through OpenCV, and which OpenCV that is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::data {

/// 8-bit PNG of packed pixels, 1 (gray) or 3 (RGB) channels. Throws core::Error{bug}, std::bad_alloc.
void encode_png(const uint8_t* pixels, int width, int height, int channels, std::vector<uint8_t>& out);

/// "OpenCV 4.6.0": other releases decode some files to other pixels.
std::string image_library_text();

}  // namespace stoker::data
