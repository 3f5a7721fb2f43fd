// SPDX-License-Identifier: Apache-2.0
#include "engine/run/step_times.h"

#include <gtest/gtest.h>

namespace stoker::engine {
namespace {

/// After 10 updates of 100 ms each: 20 ms wait for data; 3 ms are the least that a rank waits for others.
RankTotals totals(const std::string& host, double exchange_ms, double records_ms = 0) {
  return {host, 10, 1.0, 0.2, 10e-3 * exchange_ms, 10e-3 * records_ms, 10e-3 * 3};
}

TEST(RankTimesTest, TheLastToComeWaitsForTheExchangeAlone) {
  const auto summary = rank_summary(rank_times({totals("a", 45), totals("b", 5), totals("c", 35)}, {}));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->ranks, 3);
  EXPECT_DOUBLE_EQ(summary->exchange_seconds, 3e-3);
  EXPECT_DOUBLE_EQ(summary->exchange_share, 0.03);
  EXPECT_NEAR(summary->waiting_share, (0.45 + 0.05 + 0.35) / 3 - 0.03, 1e-12);
  EXPECT_EQ(summary->slowest, 1);
  EXPECT_EQ(summary->slowest_host, "b");
  EXPECT_DOUBLE_EQ(summary->slowest_seconds, 95e-3);
  EXPECT_DOUBLE_EQ(summary->others_seconds, 60e-3);
  EXPECT_NEAR(summary->slowest_excess(), 95.0 / 60 - 1, 1e-9);
}

TEST(RankTimesTest, WhatRankZeroWritesMakesItNoSlowRank) {
  const auto summary = rank_summary(rank_times({totals("a", 0, 30), totals("b", 30)}, {}));
  EXPECT_NEAR(summary->slowest_excess(), 0, 1e-9);
}

TEST(RankTimesTest, AWindowIsTheDifferenceOfTwoReadings) {
  RankTotals later = totals("a", 20);
  later.updates += 5;
  later.update += 1;       // 200 ms each
  later.exchange += 0.75;  // 150 ms
  later.wait += 0.05;
  later.least_exchange += 0.1;
  const auto times = rank_times({later}, {totals("a", 20)});
  ASSERT_EQ(times.size(), 1u);
  EXPECT_DOUBLE_EQ(times[0].update, 0.2);
  EXPECT_DOUBLE_EQ(times[0].exchange, 0.15);
  EXPECT_NEAR(times[0].work, 0.05, 1e-12);
  EXPECT_NEAR(times[0].wait, 0.01, 1e-12);
  EXPECT_NEAR(times[0].least_exchange, 0.02, 1e-12);
}

TEST(RankTimesTest, WithoutUpdatesOrOthersThereIsNothingToCompare) {
  EXPECT_TRUE(rank_times({totals("a", 1), totals("b", 1)}, {totals("a", 1), totals("b", 1)}).empty());
  EXPECT_FALSE(rank_summary(rank_times({totals("a", 1)}, {})));
  EXPECT_FALSE(rank_summary({}));
}

}  // namespace
}  // namespace stoker::engine
