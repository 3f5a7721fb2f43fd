// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "data/decode.h"
#include "data/jpeg_decode.h"
#include "data/opencv_decode.h"
#include "data/orientation.h"

namespace stoker::data {

std::string decode_region(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                          const ImageHeader& header, Region& wanted, ImageBuffer& out) {
  const Region whole{0, 0, header.width, header.height};
  const bool inside = wanted.left >= 0 && wanted.top >= 0 && wanted.width > 0 && wanted.height > 0 &&
                      wanted.left + wanted.width <= whole.width && wanted.top + wanted.height <= whole.height;
  if (header.format == ImageFormat::jpeg && header.orientation == 1) {
    if (!inside) wanted = whole;
    return decode_jpeg(bytes, size, channels, limits, wanted, out);
  }
  wanted = whole;
  std::string reason;
  if (header.format == ImageFormat::jpeg) {
    Region stored = whole;
    if (header.orientation >= 5) std::swap(stored.width, stored.height);
    reason = decode_jpeg(bytes, size, channels, limits, stored, out);
  } else {
    reason = decode_with_opencv(bytes, size, header, channels, out);
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
