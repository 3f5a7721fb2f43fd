// SPDX-License-Identifier: Apache-2.0
// How much memory samples take once they are decoded, from their headers alone. Decodes nothing, and
// is independent of caches.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image/decode.h"
#include "data/source.h"

namespace stoker::data {

/// How to look at headers.
struct HeaderScan {
  int channels = 3;  ///< of the decoded pixels
  DecodeLimits limits;
  int threads = 1;
};

/// Bytes of samples [first, first + count) as uint8 pixels; 0 for one whose header cannot be read. Throws
/// what Source::read throws, and core::StopRequested.
std::vector<int64_t> decoded_sizes(const Source& source, const HeaderScan& scan, int64_t first, int64_t count);

/// Bytes of all samples as uint8 pixels, from at most 256 headers spread evenly: within some 10 % where sizes
/// vary as photographs do. Throws as above.
int64_t estimated_decoded_bytes(const Source& source, const HeaderScan& scan);

}  // namespace stoker::data
