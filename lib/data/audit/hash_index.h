// SPDX-License-Identifier: Apache-2.0
// Finds hashes that differ from a given one in few bits, without looking at all of them: equal hashes of 16 bits each
// stand side by side, once for each quarter of the 64 bits. Who differs in few bits agrees in one quarter, but for the
// bits that nearly turned over; those are tried both ways.
// After Norouzi, Punjani, Fleet, "Fast Search in Hamming Space with Multi-Index Hashing", CVPR 2012.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/audit/picture_hash.h"

namespace stoker::data {

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

}  // namespace stoker::data
