// SPDX-License-Identifier: Apache-2.0
#include "engine/run/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>

namespace stoker::engine {
namespace {

TEST(EpochPlanTest, CoversEveryImageOnceIncludingShortLastWindowAndBatch) {
  const EpochPlan plan{/*images=*/103, /*batch_size=*/10, /*batches=*/11, /*accumulation=*/4};
  EXPECT_EQ(plan.updates(), 3);
  EXPECT_EQ(plan.window(0, 0).planned_images, 40);
  EXPECT_EQ(plan.window(0, 1).first_batch, 4);
  EXPECT_EQ(plan.window(0, 2).batch_count, 3);
  EXPECT_EQ(plan.window(0, 2).planned_images, 23) << "two full batches and a last one of three images";
  EXPECT_EQ(plan.window(0, 3).first_batch, 11) << "the end of the epoch, where a stopped run may stand";
  EXPECT_EQ(plan.window(0, 3).planned_images, 0);
}

TEST(EpochPlanTest, OneBatchPerUpdateWithoutAccumulation) {
  const EpochPlan plan{100, 10, 10, 1};
  EXPECT_EQ(plan.updates(), 10);
  EXPECT_EQ(plan.window(0, 9).planned_images, 10);
}

TEST(EpochPlanTest, StatisticsAreMeasuredOnWholeUpdatesAlone) {
  const EpochPlan plan{/*images=*/103, /*batch_size=*/10, /*batches=*/11, /*accumulation=*/2, /*replicas=*/2};
  EXPECT_EQ(statistics_windows(plan, 3, 0).size(), 0u);
  EXPECT_EQ(statistics_windows(plan, 3, 40).size(), 1u);
  EXPECT_EQ(statistics_windows(plan, 3, 41).size(), 2u);
  EXPECT_EQ(statistics_windows(plan, 3, 1000).size(), 2u) << "the third has three batches of four";
  EXPECT_EQ(statistics_windows(plan, 3, 40)[0].epoch, 3);
}

TEST(OwnBatchesTest, RanksShareEveryBatchOfEachUpdateByReplica) {
  for (const int64_t batches : {1, 7, 16, 24, 29}) {
    const EpochPlan plan{batches * 10, 10, batches, /*accumulation=*/2, /*replicas=*/4};
    for (const int64_t count : {1, 2, 4}) {
      std::vector<int64_t> all;
      for (int64_t rank = 0; rank < count; ++rank) {
        const RankShare share{rank, count};
        const std::vector<int64_t> own = own_batches(plan, share);
        for (const int64_t batch : own) EXPECT_EQ(batch % 4 % count, rank);
        for (int64_t update = 0; update <= plan.updates(); ++update) {
          const int64_t before =
              std::count_if(own.begin(), own.end(), [&](int64_t batch) { return batch < 8 * update; });
          EXPECT_EQ(own_batches_before(plan, share, update), before) << batches << " batches, update " << update;
        }
        all.insert(all.end(), own.begin(), own.end());
      }
      std::sort(all.begin(), all.end());
      ASSERT_EQ(static_cast<int64_t>(all.size()), batches);
      for (int64_t batch = 0; batch < batches; ++batch) EXPECT_EQ(all[static_cast<size_t>(batch)], batch);
    }
  }
}

TEST(OwnBatchesTest, OneReplicaOnOneRankHasThemInOrder) {
  const EpochPlan plan{100, 10, 10, 3};
  EXPECT_EQ(own_batches(plan, {}), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(OwnBatchesTest, AReplicaIsFollowedByTheOneThatItIsAddedTo) {
  EXPECT_EQ(own_replicas(8, {}), (std::vector<int64_t>{0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(own_replicas(8, {1, 2}), (std::vector<int64_t>{1, 5, 3, 7}));
  EXPECT_EQ(own_replicas(3, {}), (std::vector<int64_t>{0, 2, 1}));
}

TEST(OwnBatchesTest, ReplicasOfOneRankComeOneAfterTheOther) {
  const EpochPlan plan{/*images=*/70, /*batch_size=*/10, /*batches=*/7, /*accumulation=*/2, /*replicas=*/4};
  EXPECT_EQ(own_batches(plan, {}), (std::vector<int64_t>{0, 4, 2, 6, 1, 5, 3}));
  EXPECT_EQ(own_batches(plan, {1, 2}), (std::vector<int64_t>{1, 5, 3}));
}

TEST(TreeSumTest, AddsPartsAsTheTreeHasThemWheneverTheyCome) {
  const TreeSum<std::string>::Add add = [](std::string a, std::string b) { return "(" + a + "+" + b + ")"; };
  const std::map<size_t, std::string> trees = {{1, "0"},
                                               {2, "(0+1)"},
                                               {3, "((0+2)+1)"},
                                               {4, "((0+2)+(1+3))"},
                                               {5, "(((0+4)+2)+(1+3))"},
                                               {8, "(((0+4)+(2+6))+((1+5)+(3+7)))"}};
  std::mt19937 random(1);
  for (const auto& [parts, tree] : trees) {
    std::vector<int64_t> places(parts);
    std::iota(places.begin(), places.end(), 0);
    for (int trial = 0; trial < 50; ++trial) {
      std::shuffle(places.begin(), places.end(), random);
      TreeSum<std::string> sum(static_cast<int64_t>(parts));
      size_t kept = random() % (parts + 1);  // the number of the last ones that are not added at once
      for (size_t i = 0; i < parts; ++i) {
        sum.put(places[i], std::to_string(places[i]), i + kept < parts ? add : TreeSum<std::string>::Add());
      }
      EXPECT_EQ(sum.fold([](const std::string& part) { return part; }, add), tree);
    }
  }
}

TEST(LimitTest, EachLimitIsReachedByItsOwnCount) {
  RunProgress at;
  const RunLimits limits{/*epochs=*/10, /*max_updates=*/100, /*max_seconds=*/60, /*patience=*/3};
  EXPECT_FALSE(limit_reached(limits, at));
  at.epoch = 10;
  EXPECT_EQ(limit_reached(limits, at), StopReason::epochs_done);
  at = {};
  at.updates = 100;
  EXPECT_EQ(limit_reached(limits, at), StopReason::max_updates);
  at = {};
  at.epochs_without_improvement = 3;
  EXPECT_EQ(limit_reached(limits, at), StopReason::no_improvement);
  at = {};
  at.train_seconds = 60;
  EXPECT_EQ(limit_reached(limits, at), StopReason::max_time);
}

TEST(LimitTest, ZeroMeansNoLimit) {
  RunProgress at;
  at.updates = 1 << 30;
  at.epochs_without_improvement = 1000;
  at.train_seconds = 1e9;
  EXPECT_FALSE(limit_reached({/*epochs=*/10, 0, 0, 0}, at));
}

TEST(LimitTest, TotalUpdatesRespectMaxUpdates) {
  const EpochPlan plan{100, 10, 10, 3};  // 4 updates per epoch
  EXPECT_EQ(total_updates(plan, {5, 0, 0, 0}), 20);
  EXPECT_EQ(total_updates(plan, {5, 7, 0, 0}), 7);
}

}  // namespace
}  // namespace stoker::engine
