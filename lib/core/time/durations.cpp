// SPDX-License-Identifier: Apache-2.0
#include "core/time/durations.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stoker::core {

size_t DurationCounts::bucket_of(int64_t nanoseconds) {
  if (nanoseconds < int64_t{1} << kFirstOctave) return 0;
  const int octave = 63 - __builtin_clzll(static_cast<uint64_t>(nanoseconds));
  if (octave >= kFirstOctave + kOctaves) return kBuckets - 1;
  const auto step = static_cast<size_t>((nanoseconds >> (octave - 4)) & (kSteps - 1));  // the 4 bits behind the first
  return 1 + static_cast<size_t>(octave - kFirstOctave) * kSteps + step;
}

double DurationCounts::upper_edge(size_t bucket) {
  const auto octave = static_cast<int>(bucket / kSteps), step = static_cast<int>(bucket % kSteps);
  return std::ldexp(1 + static_cast<double>(step) / kSteps, kFirstOctave + octave);
}

double DurationCounts::middle_of(size_t bucket) {
  return bucket == 0 ? upper_edge(0) / 2 : (upper_edge(bucket - 1) + upper_edge(bucket)) / 2;
}

double Spread::standard_error() const {
  return count > 0 ? deviation_seconds / std::sqrt(static_cast<double>(count)) : 0;
}

void DurationCounts::add(int64_t nanoseconds) {
  ++counts_[bucket_of(nanoseconds)];
  total_ += nanoseconds;
  longest_ = std::max(longest_, nanoseconds);
}

DurationCounts& DurationCounts::operator+=(const DurationCounts& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  longest_ = std::max(longest_, other.longest_);
  return *this;
}

DurationCounts DurationCounts::since(const DurationCounts& before) const {
  DurationCounts window;
  for (size_t i = 0; i < kBuckets; ++i) window.counts_[i] = counts_[i] - before.counts_[i];
  window.total_ = total_ - before.total_;
  window.longest_ = longest_;
  return window;
}

Spread DurationCounts::spread() const {
  Spread spread;
  spread.count = std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
  if (spread.count == 0) return spread;
  const auto highest = static_cast<size_t>(
      std::find_if(counts_.rbegin(), counts_.rend(), [](uint32_t n) { return n > 0; }).base() - counts_.begin() - 1);
  const int64_t wanted = spread.count - spread.count / 20;
  size_t bucket = 0;
  for (int64_t below = counts_[0]; below < wanted; below += counts_[bucket]) ++bucket;
  const double longest = std::min(upper_edge(highest), static_cast<double>(longest_));
  spread.mean_seconds = 1e-9 * static_cast<double>(total_) / static_cast<double>(spread.count);
  spread.p95_seconds = 1e-9 * std::min(middle_of(bucket), longest);
  spread.max_seconds = 1e-9 * longest;
  if (spread.count < 2) return spread;
  double sum = 0, squares = 0;
  const auto count = static_cast<double>(spread.count);
  for (size_t i = 0; i <= highest; ++i) sum += counts_[i] * middle_of(i);
  for (size_t i = 0; i <= highest; ++i) squares += counts_[i] * std::pow(middle_of(i) - sum / count, 2);
  spread.deviation_seconds = 1e-9 * std::sqrt(squares / (count - 1));
  return spread;
}

void DurationRecord::add(int64_t nanoseconds) {
  constexpr auto kRelaxed = std::memory_order_relaxed;  // one writer: a load and a store lose nothing
  std::atomic<uint32_t>& count = counts_[DurationCounts::bucket_of(nanoseconds)];
  count.store(count.load(kRelaxed) + 1, kRelaxed);
  total_.store(total_.load(kRelaxed) + nanoseconds, kRelaxed);
  if (nanoseconds > longest_.load(kRelaxed)) longest_.store(nanoseconds, kRelaxed);
}

DurationCounts DurationRecord::counts() const {
  DurationCounts counts;
  for (size_t i = 0; i < counts_.size(); ++i) counts.counts_[i] = counts_[i].load(std::memory_order_relaxed);
  counts.total_ = total_.load(std::memory_order_relaxed);
  counts.longest_ = longest_.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace stoker::core
