// SPDX-License-Identifier: Apache-2.0
#include "core/time/durations.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker::core {
namespace {

constexpr int64_t kMicrosecond = 1000, kMillisecond = 1000 * kMicrosecond;

TEST(DurationsTest, MeanAndMaximumAreExactAndThePercentileIsWithin4Percent) {
  DurationCounts counts;
  for (int64_t i = 1; i <= 1000; ++i) counts.add(i * 37 * kMicrosecond);
  const Spread spread = counts.spread();
  EXPECT_EQ(spread.count, 1000);
  EXPECT_NEAR(spread.mean_seconds, 500.5 * 37e-6, 1e-12);
  EXPECT_NEAR(spread.max_seconds, 1000 * 37e-6, 1e-12);
  EXPECT_NEAR(spread.p95_seconds, 950 * 37e-6, 0.04 * 950 * 37e-6);
}

TEST(DurationsTest, TheDeviationIsThatOfTheDurationsAndEqualOnesHaveNone) {
  DurationCounts counts;
  counts.add(5 * kMillisecond);
  EXPECT_EQ(counts.spread().deviation_seconds, 0);
  EXPECT_EQ(counts.spread().standard_error(), 0);
  for (int i = 0; i < 15; ++i) counts.add(5 * kMillisecond);
  EXPECT_NEAR(counts.spread().deviation_seconds, 0, 1e-12);
  DurationCounts two;
  for (int i = 0; i < 50; ++i) {
    two.add(10 * kMillisecond);
    two.add(30 * kMillisecond);
  }
  const double deviation = 10e-3 * std::sqrt(100.0 / 99);
  EXPECT_NEAR(two.spread().deviation_seconds, deviation, 0.06 * deviation);
  EXPECT_NEAR(two.spread().standard_error(), deviation / 10, 0.006 * deviation);
  EXPECT_EQ(Spread().standard_error(), 0);
}

TEST(DurationsTest, AWindowForgetsWhatWasBefore) {
  DurationCounts counts;
  for (int i = 0; i < 100; ++i) counts.add(80 * kMillisecond);
  const DurationCounts before = counts;
  for (int i = 0; i < 10; ++i) counts.add(2 * kMillisecond);
  const Spread spread = counts.since(before).spread();
  EXPECT_EQ(spread.count, 10);
  EXPECT_NEAR(spread.mean_seconds, 2e-3, 1e-12);
  EXPECT_NEAR(spread.p95_seconds, 2e-3, 0.08e-3);
  EXPECT_NEAR(spread.max_seconds, 2e-3, 0.14e-3);
}

TEST(DurationsTest, NothingTimedIsZeroAndExtremesHaveAPlace) {
  EXPECT_EQ(DurationCounts().spread().count, 0);
  EXPECT_EQ(DurationCounts().spread().max_seconds, 0);
  DurationCounts counts;
  counts.add(0);
  counts.add(int64_t{1} << 50);  // 13 days
  EXPECT_EQ(counts.spread().count, 2);
  EXPECT_GT(counts.spread().max_seconds, 3600);
}

TEST(DurationsTest, ARecordCountsAsItsWriterDid) {
  DurationRecord record;
  DurationCounts counts;
  for (int64_t i = 0; i < 5000; ++i) {
    record.add(i * i);
    counts.add(i * i);
  }
  const Spread a = record.counts().spread(), b = counts.spread();
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.mean_seconds, b.mean_seconds);
  EXPECT_EQ(a.p95_seconds, b.p95_seconds);
  EXPECT_EQ(a.max_seconds, b.max_seconds);
}

TEST(DurationsTest, SumsOfTwoAreThoseOfBoth) {
  DurationCounts a, b;
  a.add(kMillisecond);
  b.add(3 * kMillisecond);
  a += b;
  EXPECT_EQ(a.spread().count, 2);
  EXPECT_NEAR(a.spread().mean_seconds, 2e-3, 1e-12);
  EXPECT_NEAR(a.total_seconds(), 4e-3, 1e-12);
}

}  // namespace
}  // namespace stoker::core
