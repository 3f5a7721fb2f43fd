// SPDX-License-Identifier: Apache-2.0
// The decoders of single formats but JPEG. Each gives the pixels as stored, not yet turned, to `channels` (1 or 3), and
// returns "" or the reason. `header` is what the reader of the header returned, and its size has been checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image/decode.h"
#include "data/image/pixels/image_buffer.h"
#include "data/storage/byte_reader.h"

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

/// The first picture that is not a preview, through libtiff.
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

// The structure of a PNG file, checked before any of it reaches a decoder.

/// Copies the chunks that make pixels (IHDR, PLTE, tRNS, IDAT, IEND) to `kept`, so that text, profiles and
/// animation cannot change or slow the decode. Returns "" or the reason: cut short, or a chunk whose checksum
/// does not match.
std::string keep_pixel_chunks(const uint8_t* bytes, uint64_t size, std::vector<uint8_t>& kept);

// The first frame of an animated WebP as a WebP file of its own.

/// Where the frame lies on the canvas, in pixels.
struct WebpFrame {
  int left = 0, top = 0, width = 0, height = 0;
};

bool is_animated_webp(const uint8_t* bytes, uint64_t size);

/// Builds a still WebP from the first frame. Returns "" or the reason.
std::string first_webp_frame(const uint8_t* bytes, uint64_t size, WebpFrame& frame, std::vector<uint8_t>& still);

// Orientation: where it stands, and turning stored pixels the way the camera was held.

/// The orientation in EXIF, a TIFF structure; 0 when it has none or is damaged.
int exif_orientation(const ByteView& exif);
/// The orientation in an XMP packet; 0 when it has none.
int xmp_orientation(const ByteView& xmp);
/// Turns and mirrors `image` so that it stands upright; `orientation` is EXIF's 1..8 (1: nothing to do).
void apply_orientation(int orientation, ImageBuffer& image);

}  // namespace stoker::data
