// SPDX-License-Identifier: Apache-2.0
// Random numbers as a pure function of where they are used: a counter-based generator, so that any worker on
// any machine draws the same numbers for the same (seed, epoch, sample, purpose), in any order of work.
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace stoker::core {

/// One block of Philox4x32 with 10 rounds.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// The purpose of a stream of numbers; streams of different purposes are independent.
/// The numbers are part of the format of a run. `augment` is crop and flip; later steps have streams of their own.
enum class RngPurpose : uint32_t {
  shuffle = 1,
  augment = 2,
  mixup = 3,
  init = 4,
  probe = 5,
  balance = 6,
  clip_frames = 7,
  network = 8,
  bootstrap = 9,
  excerpt = 10,
  rotate90 = 16,
  rotation = 17,
  rand_augment = 18,
  trivial_augment = 19,
  color_jitter = 20,
  grayscale = 21,
  gaussian_blur = 22,
  gaussian_noise = 23,
  random_erasing = 24,
  frequency_mask = 25,
  time_mask = 26,
  vflip = 27,
  affine = 28,
  perspective = 29,
  aug_mix = 30,
  three_augment = 31,
};

/// A stream keyed by (seed, purpose, epoch, sample). Copyable, 40 bytes, no global state. At most 2^34 draws.
class Rng {
 public:
  Rng(uint64_t seed, RngPurpose purpose, uint64_t epoch, uint64_t sample);

  uint32_t next();                          ///< uniform 32 bits
  double uniform();                         ///< [0, 1), 53 bits
  double uniform(double low, double high);  ///< [low, high)
  uint64_t below(uint64_t bound);           ///< uniform in [0, bound), unbiased (Lemire); bound > 0
  bool chance(double probability);          ///< true with that probability
  double normal();                          ///< mean 0, deviation 1 (Box-Muller)

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;  // numbers of block_ already handed out
};

/// A permutation of [0, count) as a pure function of (seed, epoch): Fisher-Yates over one Rng stream.
std::vector<uint32_t> shuffled_indices(uint32_t count, uint64_t seed, uint64_t epoch);

}  // namespace stoker::core
