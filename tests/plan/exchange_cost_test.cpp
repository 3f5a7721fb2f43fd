// SPDX-License-Identifier: Apache-2.0
#include "plan/exchange_cost.h"

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

constexpr LinkSpeed kNear = {1e9, 0}, kFar = {1e8, 0};
constexpr int64_t kBytes = 1'000'000;

TEST(ExchangeCostTest, ARankSendsAsMuchAsInARing) {
  for (const int64_t ranks : {2, 4, 8, 16}) {
    const ExchangeCost cost = exchange_cost(kBytes, {ranks, ranks}, kNear, kFar);
    EXPECT_DOUBLE_EQ(cost.sent_bytes, 2e6 * static_cast<double>(ranks - 1) / static_cast<double>(ranks)) << ranks;
    EXPECT_DOUBLE_EQ(cost.machine_sent_bytes, 0);
    EXPECT_DOUBLE_EQ(cost.seconds, cost.sent_bytes / 1e9);
  }
}

TEST(ExchangeCostTest, OneRankSendsNothing) {
  EXPECT_EQ(exchange_cost(kBytes, {1, 1}, kNear, kFar).seconds, 0);
  EXPECT_EQ(exchange_cost(kBytes, {1, 1}, kNear, kFar).messages, 0);
}

TEST(ExchangeCostTest, WhatLeavesAMachineIsSharedByItsRanks) {
  // Two machines of two: each rank sends half of the sum over the link, twice, and a quarter to its neighbour, twice.
  const ExchangeCost cost = exchange_cost(kBytes, {4, 2}, kNear, kFar);
  EXPECT_DOUBLE_EQ(cost.machine_sent_bytes, 2 * 2 * 5e5);
  EXPECT_DOUBLE_EQ(cost.seconds, 2 * (2 * 5e5 / 1e8 + 2.5e5 / 1e9));
  // Four machines with one rank each: all of it goes over links.
  EXPECT_DOUBLE_EQ(exchange_cost(kBytes, {4, 1}, kNear, kFar).seconds, 1.5e6 / 1e8);
}

TEST(ExchangeCostTest, EachMessageHasItsDelay) {
  const ExchangeCost cost = exchange_cost(kBytes, {4, 1}, kNear, {1e8, 1e-3});
  EXPECT_EQ(cost.messages, 4);
  EXPECT_DOUBLE_EQ(cost.seconds, 1.5e6 / 1e8 + 4e-3);
}

TEST(ExchangeCostTest, RanksBeyondAPowerOfTwoGiveTheirsAwayFirst) {
  // Of three, the last sends all of it to the first and gets the sum back; in between two exchange halves twice.
  const ExchangeCost cost = exchange_cost(kBytes, {3, 3}, kNear, kFar);
  EXPECT_EQ(cost.messages, 4);
  EXPECT_DOUBLE_EQ(cost.seconds, (1e6 + 5e5 + 5e5 + 1e6) / 1e9);
  EXPECT_DOUBLE_EQ(cost.sent_bytes, 2e6) << "the first: halves, and the sum";
}

}  // namespace
}  // namespace stoker::plan
