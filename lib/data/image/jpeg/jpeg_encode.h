// SPDX-License-Identifier: Apache-2.0
// Writing JPEG files: from pixels, and from another JPEG without touching its pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image/pixels/image_buffer.h"

namespace stoker::data {

/// At what resolution a JPEG keeps colour: 4:2:0, as Pillow writes it, or 4:4:4.
enum class ColourSampling { half, full };

/// Baseline JPEG of packed pixels, 1 (gray) or 3 (RGB) channels, Huffman tables fitted to the image. `quality`: 1 to
/// 100, libjpeg's scale. At most 65,500 pixels on a side. Throws std::bad_alloc, core::Error{bug}.
void encode_jpeg(const uint8_t* pixels, int width, int height, int channels, int quality, std::vector<uint8_t>& out,
                 ColourSampling sampling = ColourSampling::half);

/// Progressive or arithmetic-coded JPEG to baseline with the same coefficients, hence the same pixels;
/// comments and application markers (EXIF, colour profile) are kept. `out` stays empty when the file is
/// sequential and Huffman-coded already. The size has been checked by read_header(). Returns "" or the
/// reason; a warning is a reason. Throws std::bad_alloc.
std::string to_baseline_jpeg(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits,
                             std::vector<uint8_t>& out);

}  // namespace stoker::data
