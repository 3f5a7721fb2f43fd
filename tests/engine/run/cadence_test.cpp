// SPDX-License-Identifier: Apache-2.0
#include "engine/run/plan.h"

#include <gtest/gtest.h>

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

/// Moved by the test.
class HandClock : public core::Clock {
 public:
  double now() const override { return seconds; }
  double seconds = 1000;
};

TEST(CadenceTest, SecondsRunFromTheLastTime) {
  HandClock clock;
  Cadence cadence(Interval::seconds(20), clock);
  clock.seconds += 19;
  EXPECT_FALSE(cadence.due_after_update(1));
  clock.seconds += 3;
  EXPECT_TRUE(cadence.due_after_update(2));
  EXPECT_FALSE(cadence.due_after_update(3));
  clock.seconds += 19;
  EXPECT_FALSE(cadence.due_after_update(4)) << "19 s after the last time, 41 after the first";
  clock.seconds += 1;
  EXPECT_TRUE(cadence.due_after_update(5));
}

TEST(CadenceTest, NeverIsNever) {
  Cadence cadence{Interval{}};
  EXPECT_FALSE(cadence.due_after_update(1));
  EXPECT_FALSE(cadence.due_after_epoch(1));
}

}  // namespace
}  // namespace stoker::engine
