// SPDX-License-Identifier: Apache-2.0
// From the bytes of an image file to uint8 pixels. Tells the format by content, checks the header against the
// limits before any memory is taken, and reports trouble as a value: bad images are expected.
#pragma once

#include <cstdint>
#include <string>

#include "data/storage/scratch.h"

namespace stoker::data {

enum class ImageFormat { unknown, jpeg, png, bmp, webp, tiff };

/// Told from the header alone; width and height are those after EXIF orientation has been applied.
struct ImageHeader {
  ImageFormat format = ImageFormat::unknown;
  int width = 0, height = 0;
  int channels = 0;     ///< as stored: 1, 3 or 4
  int orientation = 1;  ///< EXIF 1..8
};

/// uint8 pixels, HWC, rows packed. May be used again for the next sample.
struct ImageBuffer {
  int height = 0, width = 0, channels = 0;
  ScratchBytes pixels;  ///< at least height * width * channels
};

struct DecodeLimits {
  double max_megapixels = 64;
  int max_side = 65535;
  int max_jpeg_scans = 100;
  double max_seconds = 30;  ///< of one JPEG; generous, since a slow machine must not make an image bad
};

/// A rectangle of an image, in pixels.
struct Region {
  int left = 0, top = 0, width = 0, height = 0;
};

/// Takes the rows of an image from a decoder, top to bottom, as they are decoded.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// What comes: rows of held.width x `channels` bytes. Once more when a decode has to start over.
  virtual void begin(const Region& held, int channels) = 0;
  /// Where the next row goes; those before it are complete.
  virtual uint8_t* next_row() = 0;
  /// The last row is complete too.
  virtual void end() = 0;
};

/// Returns "" or why the bytes are not an image that we read.
std::string read_header(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits, ImageHeader& header);

/// Decodes to `channels` (1 or 3). Meaning of the rest: gray -> RGB repeats; RGB -> gray is ITU-R BT.601
/// luma; alpha is composited over black; 16-bit is scaled to 8 by /257; palettes are looked up; CMYK JPEG is
/// converted to RGB (Adobe-inverted where marked); EXIF orientation is applied; animations give the first
/// frame. Returns "" or the reason; any decoder warning makes a bad image. Throws Error{data}, without the file's
/// name, when a time limit is over.
std::string decode_image(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                         ImageBuffer& out);

/// As decode_image(), of which only the pixels of `wanted` are needed; `header` is what read_header() said.
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
