// SPDX-License-Identifier: Apache-2.0
#include "engine/run/plan.h"

#include <gtest/gtest.h>

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
