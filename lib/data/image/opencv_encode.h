// SPDX-License-Identifier: Apache-2.0
// Writing PNG files through OpenCV.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::data {

/// 8-bit PNG of packed pixels, 1 (gray) or 3 (RGB) channels. Throws core::Error{bug}, std::bad_alloc.
void encode_png(const uint8_t* pixels, int width, int height, int channels, std::vector<uint8_t>& out);

}  // namespace stoker::data
