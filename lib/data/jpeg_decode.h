// SPDX-License-Identifier: Apache-2.0
// JPEG through libjpeg-turbo itself: exact settings, every warning seen, scans counted. Pixels come as stored;
// EXIF is somebody else's.
#pragma once

#include <cstdint>
#include <string>

#include "data/decode.h"

namespace stoker::data {

/// Decodes with the accurate integer transform and smooth chroma upsampling to `channels` (1 or 3). The size has
/// been checked by read_header(). Returns "" or the reason; a warning of the decoder is a reason.
std::string decode_jpeg(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                        ImageBuffer& out);

}  // namespace stoker::data
