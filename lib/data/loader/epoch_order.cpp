// SPDX-License-Identifier: Apache-2.0
#include "data/loader/epoch_order.h"

#include <algorithm>
#include <numeric>

#include "core/rng.h"

namespace stoker::data {
namespace {

// Streams of RngPurpose::shuffle; stream 0 is that of core::shuffled_indices().
constexpr uint64_t kRunStream = 1, kWindowStream = 2;

template <typename Iterator>
void shuffle(Iterator first, Iterator last, core::Rng& rng) {
  for (auto left = static_cast<uint64_t>(last - first); left > 1; --left) {
    std::swap(first[static_cast<std::ptrdiff_t>(left - 1)], first[static_cast<std::ptrdiff_t>(rng.below(left))]);
  }
}

}  // namespace

std::vector<uint32_t> shuffled_order(const std::vector<int64_t>& run_ends, int64_t window, uint64_t seed,
                                     uint64_t epoch) {
  const int64_t samples = run_ends.back();
  if (window == 0) return core::shuffled_indices(static_cast<uint32_t>(samples), seed, epoch);
  std::vector<size_t> runs(run_ends.size());
  std::iota(runs.begin(), runs.end(), size_t{0});
  core::Rng run_rng(seed, core::RngPurpose::shuffle, epoch, kRunStream);
  shuffle(runs.begin(), runs.end(), run_rng);
  std::vector<uint32_t> order;
  order.reserve(static_cast<size_t>(samples));
  for (const size_t run : runs) {
    for (int64_t i = run == 0 ? 0 : run_ends[run - 1]; i < run_ends[run]; ++i) {
      order.push_back(static_cast<uint32_t>(i));
    }
  }
  core::Rng window_rng(seed, core::RngPurpose::shuffle, epoch, kWindowStream);
  for (int64_t at = 0; at < samples; at += window) {
    shuffle(order.begin() + at, order.begin() + std::min(at + window, samples), window_rng);
  }
  return order;
}

}  // namespace stoker::data
