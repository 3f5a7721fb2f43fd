// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/run_telemetry.h"

#include <gtest/gtest.h>

#include "engine/loop/decision.h"
#include "tests/engine/group/thread_group.h"

namespace stoker::engine {
namespace {

/// `updates` updates of 0.1 s each, of which some is spent waiting for other ranks.
StepTimings timings(int64_t updates, double exchange_seconds) {
  StepTimings times;
  times.updates = updates;
  times.seconds = 0.1 * static_cast<double>(updates);
  times.update.mean_seconds = 0.1;
  times.parts[StepPart::exchange].mean_seconds = exchange_seconds;
  times.parts[StepPart::report].mean_seconds = 0.01;
  return times;
}

void expect_no_error(const std::vector<std::exception_ptr>& errors) {
  for (const std::exception_ptr& error : errors) EXPECT_EQ(error, nullptr);
}

TEST(RankLedgerTest, EveryRankLearnsTheTimesOfAll) {
  expect_no_error(run_ranks(3, [](Group& group) {
    RankLedger ledger(group);
    ledger.begin_epoch();
    ledger.read(timings(10, 0.01 * group.rank()));
    const std::vector<RankTimes> ranks = ledger.since_report();
    ASSERT_EQ(ranks.size(), 3u);
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_NEAR(ranks[rank].exchange, 0.01 * static_cast<double>(rank), 1e-9);
      EXPECT_NEAR(ranks[rank].work, 0.09 - 0.01 * static_cast<double>(rank), 1e-9);
      EXPECT_FALSE(ranks[rank].host.empty());
    }
  }));
}

TEST(RankLedgerTest, ReportsAndLongerWindowsAreKeptApart) {
  expect_no_error(run_ranks(2, [](Group& group) {
    RankLedger ledger(group);
    ledger.begin_epoch();
    ledger.add_exchange(0.05);
    ledger.read(timings(10, 0.01));
    const std::vector<RankTimes> first = ledger.since_report();
    EXPECT_NEAR(first.at(1).exchange, 0.01, 1e-9);
    EXPECT_NEAR(first.at(1).least_exchange, 0.005, 1e-9);
    ledger.read(timings(20, 0.03));  // 0.05 in the ten that are new
    EXPECT_NEAR(ledger.since_report().at(1).exchange, 0.05, 1e-9);
    EXPECT_NEAR(ledger.recent().at(1).exchange, 0.03, 1e-9);
    EXPECT_NEAR(ledger.since_epoch_start().at(1).exchange, 0.03, 1e-9);
    EXPECT_NEAR(ledger.since_epoch_start().at(1).least_exchange, 0.0025, 1e-9);
    EXPECT_TRUE(ledger.recent().empty()) << "nothing new";
    ledger.begin_epoch();
    EXPECT_TRUE(ledger.since_epoch_start().empty());
  }));
}

TEST(RankLedgerTest, ALoneRankExchangesNothing) {
  RankLedger ledger(alone());
  ledger.read(timings(10, 0));
  EXPECT_TRUE(ledger.since_report().empty());
}

TEST(DecisionsTest, TheShortestWaitOfEachUpdateIsKnownToAll) {
  expect_no_error(run_ranks(3, [](Group& group) {
    Decisions decisions({/*epochs=*/10, 0, 0, 0}, config::Interval::epochs(1), config::Interval::epochs(1), group);
    RunProgress at;
    for (at.updates = 1; at.updates <= 3; ++at.updates) {  // the last to come is another one each time
      const double waited = at.updates % 3 == group.rank() ? 0.001 : 0.5;
      EXPECT_EQ(decisions.after_update(at, /*is_last_of_epoch=*/false, 0, waited).waited, 0.001);
    }
  }));
}

TEST(DecisionsTest, AllRanksReportWhenRankZeroDoes) {
  expect_no_error(run_ranks(2, [](Group& group) {
    // Clocks of their own would let each report at another update.
    const config::Interval every = group.is_root() ? config::Interval::updates(2) : config::Interval::updates(3);
    Decisions decisions({/*epochs=*/10, 0, 0, 0}, config::Interval::epochs(1), every, group);
    RunProgress at;
    for (at.updates = 1; at.updates <= 6; ++at.updates) {
      EXPECT_EQ(decisions.after_update(at, /*is_last_of_epoch=*/false).reports, at.updates % 2 == 0) << at.updates;
    }
  }));
}

}  // namespace
}  // namespace stoker::engine
