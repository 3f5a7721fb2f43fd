// SPDX-License-Identifier: Apache-2.0
// The decoders of single formats but JPEG. Each gives the pixels as stored, not yet turned, to `channels` (1 or 3), and
// returns "" or the reason. `header` is what the reader of the header returned, and its size has been checked.
#pragma once

#include <string>

#include "data/image/decode.h"
#include "data/storage/byte_view.h"

namespace stoker::data {

std::string decode_png(const ByteView& file, const ImageHeader& header, int channels, const DecodeLimits& limits,
                       ImageBuffer& out);

/// WebP and JPEG 2000 through OpenCV.
std::string decode_with_opencv(const ByteView& file, const ImageHeader& header, int channels,
                               const DecodeLimits& limits, ImageBuffer& out);

std::string read_bmp_header(const ByteView& file, ImageHeader& header);
std::string decode_bmp(const ByteView& file, const ImageHeader& header, int channels, ImageBuffer& out);

/// PBM, PGM, PPM and PAM, plain and raw.
std::string read_pnm_header(const ByteView& file, ImageHeader& header);
std::string decode_pnm(const ByteView& file, const ImageHeader& header, int channels, const DecodeLimits& limits,
                       ImageBuffer& out);

/// The first frame, through giflib.
std::string read_gif_header(const ByteView& file, ImageHeader& header);
std::string decode_gif(const ByteView& file, const ImageHeader& header, int channels, ImageBuffer& out);

std::string read_jpeg2000_header(const ByteView& file, ImageHeader& header);

/// The first picture that is no preview, through libtiff.
std::string read_tiff_header(const ByteView& file, ImageHeader& header);
std::string decode_tiff(const ByteView& file, const ImageHeader& header, int channels, const DecodeLimits& limits,
                        ImageBuffer& out);

/// Makes `out` an image of this size whose pixels are 0.
inline void start_image(int width, int height, int channels, ImageBuffer& out) {
  out.width = width;
  out.height = height;
  out.channels = channels;
  out.pixels.assign(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels), 0);
}
inline uint8_t* row_of(ImageBuffer& image, int64_t y) { return image.pixels.data() + y * image.width * image.channels; }

}  // namespace stoker::data
