// SPDX-License-Identifier: Apache-2.0
// Pairs of pictures that are one picture: resized, recompressed, mirrored, cropped by up to a tenth, or several of
// these. Works on thumbnails, whatever their origin.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/audit/picture_hash.h"

namespace stoker::data {

// Finds hashes that differ from a given one in few bits, without looking at all of them: equal hashes of 16 bits each
// stand side by side, once for each quarter of the 64 bits. Who differs in few bits agrees in one quarter, but for the
// bits that nearly turned over; those are tried both ways.
// After Norouzi, Punjani, Fleet, "Fast Search in Hamming Space with Multi-Index Hashing", CVPR 2012.

class HashIndex {
 public:
  struct Match {
    int64_t entry = 0;
    int distance = 0;  ///< bits
  };

  explicit HashIndex(const std::vector<uint64_t>& hashes);

  /// Appends entries that differ from `hash` in at most `most_bits` bits, an entry up to once for each quarter.
  /// `salt`: where buckets hold very many alike, which of them are looked at.
  void find(const PictureHash& hash, int most_bits, uint64_t salt, std::vector<Match>& matches) const;

 private:
  static constexpr int kQuarters = 4, kBitsEach = 16;
  struct Entry {
    uint64_t bits;
    int64_t entry;
  };
  struct Quarter {
    std::vector<int64_t> begins;  ///< [2^16 + 1]
    std::vector<Entry> entries;   ///< by the value of the quarter
  };

  static uint32_t value_of(uint64_t bits, int quarter);
  void look(int quarter, uint32_t value, uint64_t bits, int most_bits, uint64_t salt,
            std::vector<Match>& matches) const;

  std::array<Quarter, kQuarters> quarters_;
};

struct Picture {
  Thumbnail thumbnail{};
  int32_t shorter_side = 0;  ///< pixels; 0: not to be compared
};

struct NearPair {
  int64_t a = 0, b = 0;  ///< indices of pictures, a < b
  float agreement = 0;   ///< agreement of their details, once they are aligned: 0.9 to 1
};

/// For each picture a few candidates are found by hashes of its windows (picture_hash.h) and then
/// compared by their details. A pair must agree by 0.9. Where a picture has many others that look nearly
/// as much alike (clothes on black), only a pair counts that stands out from them: that lacks less than a fifth of what
/// the eighth candidate that is no copy lacks of an agreement of 1. Copies are a family of any size, connected by its
/// pairs, with a gap between it and everything else; of a large one not every pair is listed. Pictures with almost no
/// contrast are left out. The result does not depend on `threads`. Throws core::StopRequested.
std::vector<NearPair> near_pairs(const std::vector<Picture>& pictures, int64_t threads);

}  // namespace stoker::data
