// SPDX-License-Identifier: Apache-2.0
#include "data/audit/hash_index.h"

#include <algorithm>

namespace stoker::data {
namespace {

constexpr int kUncertain = 3;          // bits of a quarter that are tried both ways
constexpr int64_t kMaxInBucket = 512;  // entries of a bucket that are looked at

int bits_set(uint64_t bits) { return __builtin_popcountll(bits); }

}  // namespace

// Every quarter gets low and high frequencies: bit i belongs to quarter i % 4.
uint32_t HashIndex::value_of(uint64_t bits, int quarter) {
  uint32_t value = 0;
  for (int i = 0; i < kBitsEach; ++i) value |= static_cast<uint32_t>(bits >> (4 * i + quarter) & 1) << i;
  return value;
}

HashIndex::HashIndex(const std::vector<uint64_t>& hashes) {
  for (int q = 0; q < kQuarters; ++q) {
    Quarter& quarter = quarters_[static_cast<size_t>(q)];
    quarter.begins.assign((size_t{1} << kBitsEach) + 1, 0);
    for (const uint64_t bits : hashes) ++quarter.begins[value_of(bits, q) + 1];
    for (size_t i = 1; i < quarter.begins.size(); ++i) quarter.begins[i] += quarter.begins[i - 1];
    std::vector<int64_t> next(quarter.begins.begin(), quarter.begins.end() - 1);
    quarter.entries.resize(hashes.size());
    for (size_t i = 0; i < hashes.size(); ++i) {
      quarter.entries[static_cast<size_t>(next[value_of(hashes[i], q)]++)] = {hashes[i], static_cast<int64_t>(i)};
    }
  }
}

void HashIndex::look(int quarter, uint32_t value, uint64_t bits, int most_bits, uint64_t salt,
                     std::vector<Match>& matches) const {
  const Quarter& of = quarters_[static_cast<size_t>(quarter)];
  const int64_t begin = of.begins[value], count = of.begins[value + 1] - begin;
  const int64_t looked_at = std::min(count, kMaxInBucket);
  const int64_t first = count > looked_at ? static_cast<int64_t>(salt % static_cast<uint64_t>(count)) : 0;
  for (int64_t i = 0; i < looked_at; ++i) {
    const Entry& entry = of.entries[static_cast<size_t>(begin + (first + i) % count)];
    const int distance = bits_set(entry.bits ^ bits);
    if (distance <= most_bits) matches.push_back({entry.entry, distance});
  }
}

void HashIndex::find(const PictureHash& hash, int most_bits, uint64_t salt, std::vector<Match>& matches) const {
  for (int quarter = 0; quarter < kQuarters; ++quarter) {
    const uint32_t value = value_of(hash.bits, quarter);
    std::array<int, kBitsEach> order;
    for (int i = 0; i < kBitsEach; ++i) order[static_cast<size_t>(i)] = i;
    const auto margin = [&](int i) { return hash.margin[static_cast<size_t>(4 * i + quarter)]; };
    std::partial_sort(order.begin(), order.begin() + kUncertain, order.end(),
                      [&](int a, int b) { return margin(a) < margin(b); });
    for (uint32_t turned = 0; turned < 1u << kUncertain; ++turned) {
      uint32_t tried = value;
      for (int k = 0; k < kUncertain; ++k) tried ^= (turned >> k & 1) << order[static_cast<size_t>(k)];
      look(quarter, tried, hash.bits, most_bits, salt, matches);
    }
  }
}

}  // namespace stoker::data
