// SPDX-License-Identifier: Apache-2.0
// How long something took, very often, in bounded memory: counts by length, from which mean, percentile and
// maximum of any window follow.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace stoker::core {

/// Statistics of durations; all 0 where there were none.
struct Spread {
  int64_t count = 0;
  double mean_seconds = 0;       ///< exact
  double p95_seconds = 0;        ///< 95th percentile, within 4 %
  double max_seconds = 0;        ///< exact for all so far; within 7 % for a window that lacks the longest
  double deviation_seconds = 0;  ///< standard deviation, of lengths within 4 %; 0 for one duration

  /// How far the mean may be off, by chance.
  double standard_error() const;
};

/// Totals at one moment. A later one less an earlier one are those of the time between.
class DurationCounts {
 public:
  void add(int64_t nanoseconds);
  DurationCounts& operator+=(const DurationCounts& other);
  /// The additions since `before`, an earlier state of the same counts.
  DurationCounts since(const DurationCounts& before) const;
  Spread spread() const;
  double total_seconds() const { return 1e-9 * static_cast<double>(total_); }

 private:
  friend class DurationRecord;
  // Sixteen steps per doubling, from 256 ns to more than an hour.
  static constexpr int kFirstOctave = 8, kOctaves = 34, kSteps = 16;
  static constexpr size_t kBuckets = 1 + kOctaves * kSteps;
  static size_t bucket_of(int64_t nanoseconds);
  static double upper_edge(size_t bucket);  ///< nanoseconds
  static double middle_of(size_t bucket);

  std::array<uint32_t, kBuckets> counts_{};
  int64_t total_ = 0, longest_ = 0;  ///< nanoseconds
};

/// Durations that one thread adds and any may read.
class DurationRecord {
 public:
  void add(int64_t nanoseconds);
  DurationCounts counts() const;

 private:
  std::array<std::atomic<uint32_t>, DurationCounts::kBuckets> counts_{};
  std::atomic<int64_t> total_{0}, longest_{0};
};

}  // namespace stoker::core
