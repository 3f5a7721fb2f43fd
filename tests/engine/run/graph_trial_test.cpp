// SPDX-License-Identifier: Apache-2.0
#include "engine/run/step_times.h"

#include <gtest/gtest.h>

namespace stoker::engine {
namespace {

/// Timings of updates of this length, on a device that is this far behind its host.
StepTimings window_of(double milliseconds, double lag_milliseconds, int64_t updates = 100) {
  StepTimings window;
  window.updates = updates;
  window.has_device = true;
  window.update.mean_seconds = 1e-3 * milliseconds;
  window.lag_seconds = 1e-3 * lag_milliseconds;
  return window;
}

TEST(GraphTrialTest, GraphsAreTriedWhereLaunchingHoldsTheDeviceUpAndKeptWhereUpdatesBecomeShorter) {
  GraphTrial trial;
  EXPECT_FALSE(trial.judge(window_of(10, 30))) << "the device is far behind";
  EXPECT_TRUE(trial.judge(window_of(10, 0.1)));
  EXPECT_TRUE(trial.judge(window_of(14, 0.1))) << "warm-up and recording are in it";
  EXPECT_FALSE(trial.is_decided());
  EXPECT_TRUE(trial.judge(window_of(4, 0.1)));
  EXPECT_TRUE(trial.is_decided());
  EXPECT_DOUBLE_EQ(trial.launched_seconds(), 0.01);
  EXPECT_DOUBLE_EQ(trial.replayed_seconds(), 0.004);
  EXPECT_TRUE(trial.judge(window_of(20, 0.1))) << "decided once";
}

TEST(GraphTrialTest, GraphsThatSpareLittleAreDropped) {
  GraphTrial trial;
  trial.judge(window_of(10, 0.1));
  trial.judge(window_of(10, 0.1));
  EXPECT_FALSE(trial.judge(window_of(9.5, 0.1)));
  EXPECT_TRUE(trial.is_decided());
  EXPECT_FALSE(trial.judge(window_of(10, 0.1))) << "tried once";
}

TEST(GraphTrialTest, AFewUpdatesADeviceWithoutAClockAndWaitsForDataSayNothing) {
  GraphTrial trial;
  EXPECT_FALSE(trial.judge({}));
  EXPECT_FALSE(trial.judge(window_of(10, 0.1, /*updates=*/5)));
  StepTimings on_cpu = window_of(10, 0);
  on_cpu.has_device = false;
  EXPECT_FALSE(trial.judge(on_cpu));
  StepTimings starved = window_of(10, 0);
  starved.parts[StepPart::wait].mean_seconds = 0.005;
  EXPECT_FALSE(trial.judge(starved));
  EXPECT_TRUE(trial.judge(window_of(10, 0.1)));
}

}  // namespace
}  // namespace stoker::engine
