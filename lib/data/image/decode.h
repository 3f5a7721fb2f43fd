// SPDX-License-Identifier: Apache-2.0
// From the bytes of an image file to uint8 pixels. Recognizes the format by content, checks the header against the
// limits before any memory is taken, and returns errors as values: bad images are expected.
#pragma once

#include <cstdint>
#include <string>

#include "data/image/pixels/image_buffer.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {

/// Read from the header alone; width and height are those after EXIF orientation has been applied.
struct ImageHeader {
  ImageFormat format = ImageFormat::unknown;
  int width = 0, height = 0;
  int channels = 0;     ///< as stored: 1, 3 or 4
  int orientation = 1;  ///< EXIF 1..8
  int bits = 8;         ///< bits per sample as stored; less than 8 count as 8
};

/// Returns "" or why the bytes are not an image that we read.
std::string read_header(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits, ImageHeader& header);

/// Decodes to `channels` (1 or 3). Meaning of the rest: gray -> RGB repeats; RGB -> gray is ITU-R BT.601
/// luma; alpha is composited over black; more than 8 bits are scaled to 8 (`limits.range`); palettes are looked up;
/// CMYK is converted to RGB; orientation is applied; animations give the first frame. Returns "" or the reason; a
/// warning of a decoder within pixels makes a bad image, unless `limits.repair`. Throws Error{data}, without the file's
/// name, when a time limit is over.
std::string decode_image(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                         ImageBuffer& out);

/// As decode_image(), of which only the pixels of `wanted` are needed; `header` is the result of read_header().
/// On return `wanted` is what `out` holds, the same or more. What a JPEG has below the region is then not
/// looked at, except that the file must have its end.
std::string decode_region(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                          const ImageHeader& header, Region& wanted, ImageBuffer& out);

/// Whether decode_rows() takes such an image.
bool can_decode_rows(const ImageHeader& header, const Region& wanted);
/// As decode_region(), the pixels going to `rows` instead: nothing holds the region as a whole.
std::string decode_rows(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                        const Region& wanted, RowSink& rows);

}  // namespace stoker::data
