// SPDX-License-Identifier: Apache-2.0
#include "engine/run/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

TEST(CadenceTest, AShareOfAnEpochEndsWithIt) {
  for (const double updates_per_epoch : {13.0, 8.0, 1.0}) {
    for (const int64_t parts : {1, 2, 4}) {
      Cadence every(Interval::updates(updates_per_epoch / static_cast<double>(parts)));
      int64_t due = 0;
      for (int64_t update = 1; static_cast<double>(update) <= 3 * updates_per_epoch; ++update) {
        const bool is_due = every.due_after_update(update);
        due += is_due;
        EXPECT_TRUE(is_due || update % std::llround(updates_per_epoch) != 0) << update;
      }
      EXPECT_EQ(due, std::min<int64_t>(3 * parts, std::llround(3 * updates_per_epoch)));
    }
  }
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
