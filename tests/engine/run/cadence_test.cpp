// SPDX-License-Identifier: Apache-2.0
#include "engine/run/cadence.h"

#include <gtest/gtest.h>

#include <thread>

namespace stoker::engine {
namespace {

using config::Interval;

TEST(CadenceTest, UpdatesAndEpochsAreCounted) {
  Cadence every_third_update(Interval::updates(3));
  EXPECT_FALSE(every_third_update.due_after_update(2));
  EXPECT_TRUE(every_third_update.due_after_update(3));
  EXPECT_FALSE(every_third_update.due_after_epoch(3));
  Cadence every_second_epoch(Interval::epochs(2));
  EXPECT_FALSE(every_second_epoch.due_after_update(2));
  EXPECT_FALSE(every_second_epoch.due_after_epoch(1));
  EXPECT_TRUE(every_second_epoch.due_after_epoch(2));
}

TEST(CadenceTest, SecondsRunFromTheLastTime) {
  Cadence cadence(Interval::seconds(0.02));
  EXPECT_FALSE(cadence.due_after_update(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_TRUE(cadence.due_after_update(2));
  EXPECT_FALSE(cadence.due_after_update(3));
}

TEST(CadenceTest, NeverIsNever) {
  Cadence cadence{Interval{}};
  EXPECT_FALSE(cadence.due_after_update(1));
  EXPECT_FALSE(cadence.due_after_epoch(1));
}

}  // namespace
}  // namespace stoker::engine
