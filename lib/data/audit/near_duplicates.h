// SPDX-License-Identifier: Apache-2.0
// Pairs of pictures that are one picture: resized, recompressed, mirrored, cropped by up to a tenth, or several of
// these. Works on thumbnails, whatever their origin.
#pragma once

#include <cstdint>
#include <vector>

#include "data/audit/thumbnail.h"

namespace stoker::data {

struct Picture {
  Thumbnail thumbnail{};
  int32_t shorter_side = 0;  ///< pixels; 0: not to be compared
};

struct NearPair {
  int64_t a = 0, b = 0;  ///< indices of pictures, a < b
  float agreement = 0;   ///< of their details, once they are aligned: 0.9 to 1
};

/// For each picture a few candidates are found by hashes of its windows (picture_hash.h, hash_index.h) and then
/// compared by their details (alignment.h). A pair must agree by 0.9. Where a picture has many others that look nearly
/// as much alike (clothes on black, frames of a video), only a pair counts that stands out from them: that lacks less
/// than a third of what the eighth candidate lacks of an agreement of 1. Pictures with almost no contrast are left
/// out. The result does not depend on `threads`. Throws core::StopRequested.
std::vector<NearPair> near_pairs(const std::vector<Picture>& pictures, int64_t threads);

}  // namespace stoker::data
