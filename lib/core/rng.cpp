// SPDX-License-Identifier: Apache-2.0
#include "core/rng.h"

#include <cmath>
#include <numeric>

namespace stoker::core {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  // Multipliers and Weyl increments of the paper, section 3.3.
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

Rng::Rng(uint64_t seed, RngPurpose purpose, uint64_t epoch, uint64_t sample)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      // The block number runs in counter_[0]; the rest names the stream. Samples have 40 bits, epochs 24.
      counter_{0, static_cast<uint32_t>(sample), static_cast<uint32_t>(epoch),
               (static_cast<uint32_t>(purpose) << 24) ^ static_cast<uint32_t>(sample >> 32)} {}

uint32_t Rng::next() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

double Rng::uniform() {
  const uint64_t high = next();
  const uint64_t bits = (high << 32 | next()) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

double Rng::uniform(double low, double high) { return low + (high - low) * uniform(); }

uint64_t Rng::below(uint64_t bound) {
  // Lemire, "Fast Random Integer Generation in an Interval", 2019: multiply, reject the biased remainder.
  const uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const uint64_t high = next();
    const uint64_t bits = high << 32 | next();
    const auto product = static_cast<unsigned __int128>(bits) * bound;
    if (static_cast<uint64_t>(product) >= threshold) return static_cast<uint64_t>(product >> 64);
  }
}

bool Rng::chance(double probability) { return uniform() < probability; }

double Rng::normal() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(kTwoPi * uniform());
}

std::vector<uint32_t> shuffled_indices(uint32_t count, uint64_t seed, uint64_t epoch) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  Rng rng(seed, RngPurpose::shuffle, epoch, 0);
  for (uint32_t left = count; left > 1; --left) std::swap(order[left - 1], order[rng.below(left)]);
  return order;
}

}  // namespace stoker::core
