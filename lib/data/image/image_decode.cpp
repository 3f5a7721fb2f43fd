// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "data/image/decode.h"
#include "data/image/decoders.h"
#include "data/image/jpeg/jpeg_decode.h"
#include "data/image/orientation.h"

namespace stoker::data {
namespace {

bool lies_inside(const Region& region, const ImageHeader& image) {
  return region.left >= 0 && region.top >= 0 && region.width > 0 && region.height > 0 &&
         region.left + region.width <= image.width && region.top + region.height <= image.height;
}

/// As stored, of every format but JPEG.
std::string decode_stored(const ByteView& file, const ImageHeader& header, int channels, const DecodeLimits& limits,
                          ImageBuffer& out) {
  switch (header.format) {
    case ImageFormat::png: return decode_png(file, header, channels, limits, out);
    case ImageFormat::bmp: return decode_bmp(file, header, channels, out);
    case ImageFormat::tiff: return decode_tiff(file, header, channels, limits, out);
    case ImageFormat::pnm: return decode_pnm(file, header, channels, limits, out);
    case ImageFormat::gif: return decode_gif(file, header, channels, out);
    default: return decode_with_opencv(file, header, channels, limits, out);
  }
}

}  // namespace

bool can_decode_rows(const ImageHeader& header, const Region& wanted) {
  return header.format == ImageFormat::jpeg && header.orientation == 1 && lies_inside(wanted, header);
}

std::string decode_rows(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                        const Region& wanted, RowSink& rows) {
  return decode_jpeg(bytes, size, channels, limits, wanted, rows);
}

std::string decode_region(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                          const ImageHeader& header, Region& wanted, ImageBuffer& out) {
  const Region whole{0, 0, header.width, header.height};
  if (header.format == ImageFormat::jpeg && header.orientation == 1) {
    if (!lies_inside(wanted, header)) wanted = whole;
    return decode_jpeg(bytes, size, channels, limits, wanted, out);
  }
  wanted = whole;
  std::string reason;
  if (header.format == ImageFormat::jpeg) {
    Region stored = whole;
    if (header.orientation >= 5) std::swap(stored.width, stored.height);
    reason = decode_jpeg(bytes, size, channels, limits, stored, out);
  } else {
    ImageHeader stored = header;
    if (header.orientation >= 5) std::swap(stored.width, stored.height);
    reason = decode_stored({bytes, size}, stored, channels, limits, out);
  }
  if (reason.empty()) apply_orientation(header.orientation, out);
  return reason;
}

std::string decode_image(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                         ImageBuffer& out) {
  ImageHeader header;
  if (std::string reason = read_header(bytes, size, limits, header); !reason.empty()) return reason;
  Region whole{0, 0, header.width, header.height};
  return decode_region(bytes, size, channels, limits, header, whole, out);
}

}  // namespace stoker::data
