// SPDX-License-Identifier: Apache-2.0
#include "data/decode.h"
#include "data/jpeg_decode.h"
#include "data/opencv_decode.h"
#include "data/orientation.h"

namespace stoker::data {

std::string decode_image(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                         ImageBuffer& out) {
  ImageHeader header;
  if (std::string reason = read_header(bytes, size, limits, header); !reason.empty()) return reason;
  std::string reason = header.format == ImageFormat::jpeg
                           ? decode_jpeg(bytes, size, channels, limits, out)
                           : decode_with_opencv(bytes, size, header, channels, out);
  if (reason.empty()) apply_orientation(header.orientation, out);
  return reason;
}

}  // namespace stoker::data
