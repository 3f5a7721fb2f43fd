// SPDX-License-Identifier: Apache-2.0
#include "data/decode.h"

namespace stoker::data {

std::string read_header(const uint8_t*, uint64_t, const DecodeLimits&, ImageHeader&) { return "not yet"; }

std::string decode_image(const uint8_t*, uint64_t, int, const DecodeLimits&, ImageBuffer&) { return "not yet"; }

}  // namespace stoker::data
