// SPDX-License-Identifier: Apache-2.0
// Messages about float16 runs in which updates were skipped.
#include "commands/inspect/fault_search.h"

#include <gtest/gtest.h>

#include <limits>

#include "commands/inspect/recorded_run.h"
#include "quiet_run.h"

namespace stoker::train {
namespace {

constexpr double kOverflow = std::numeric_limits<double>::infinity();
constexpr engine::SkipLimits kLimits = {/*min_scale=*/1e-4, /*max_skipped=*/15};

/// Skips updates from `first` (an index) on; the scale halves with each.
void skip(std::vector<WatchedUpdate>& updates, size_t first, size_t count, double scale) {
  for (size_t i = first; i < first + count; ++i) {
    updates[i].is_skipped = true;
    updates[i].gradient_norm = kOverflow;
    updates[i].layers = {{"stem", kOverflow}, {"body", kOverflow}, {"head", 1}};
    updates[i].loss_scale = scale;
    updates[i].next_scale = scale /= 2;
  }
}

std::vector<WatchedUpdate> float16_run(int64_t count, double scale) {
  std::vector<WatchedUpdate> updates = quiet_run(count);
  for (WatchedUpdate& update : updates) update.loss_scale = update.next_scale = scale;
  return updates;
}

TEST(SkippedUpdatesTest, ALossScaleFromWhichARunOnlySkipsIsTheCauseAndNotTheLearningRate) {
  std::vector<WatchedUpdate> updates = float16_run(15, 1e25);
  skip(updates, 0, 15, 1e25);
  const Blame blame = find_fault(updates, kLimits);
  EXPECT_EQ(blame.kind, Blame::Kind::divergence);
  EXPECT_EQ(blame.began.update, 1);
  EXPECT_TRUE(blame.by_skipping);
  EXPECT_NE(blame.cause.find("the loss scale is too high"), std::string::npos) << blame.cause;
  EXPECT_NE(blame.cause.find("1e+25"), std::string::npos) << blame.cause;
  EXPECT_EQ(blame.cause.find("learning rate"), std::string::npos) << blame.cause;
  EXPECT_EQ(blame.layer, "body");  // the last that overflows, from which it goes to those before
  EXPECT_TRUE(blame.samples.empty());
  EXPECT_NE(advice_about_skips(updates, 1e25).find("--loss-scale 65536"), std::string::npos);
  EXPECT_NE(advice_about_skips(updates, 1e25).find("--max-skipped"), std::string::npos);
}

TEST(SkippedUpdatesTest, GradientsThatOverflowAtAScaleBelowOneAreNotTheScales) {
  std::vector<WatchedUpdate> updates = float16_run(50, 65536);
  skip(updates, 10, 31, 65536);
  updates.resize(41);
  const Blame blame = find_fault(updates, {/*min_scale=*/1e-4, /*max_skipped=*/100});
  EXPECT_EQ(blame.began.update, 11);
  EXPECT_NE(blame.cause.find("at any loss scale"), std::string::npos) << blame.cause;
  EXPECT_NE(advice_about_skips(updates, 65536).find("bfloat16"), std::string::npos);
}

TEST(SkippedUpdatesTest, WhatChangedBeforeTheyBeganIsTheCause) {
  std::vector<WatchedUpdate> updates = float16_run(30, 65536);
  updates[13].rate_before = 0.1;
  updates[13].learning_rate = 100;
  skip(updates, 15, 15, 65536);
  Blame blame = find_fault(updates, kLimits);
  EXPECT_EQ(blame.began.update, 14);
  EXPECT_EQ(blame.not_finite_at, 16);
  EXPECT_NE(blame.cause.find("the learning rate went from 0.1 to 100"), std::string::npos) << blame.cause;
}

TEST(SkippedUpdatesTest, AFewOfThemAreNoFault) {
  std::vector<WatchedUpdate> updates = float16_run(30, 65536);
  skip(updates, 0, 5, 1e12);
  skip(updates, 12, 1, 65536);
  skip(updates, 28, 2, 65536);
  EXPECT_EQ(find_fault(updates, kLimits).kind, Blame::Kind::nothing);
  EXPECT_EQ(find_fault(updates).kind, Blame::Kind::nothing);
  skip(updates, 0, 30, 1e25);
  EXPECT_EQ(find_fault(updates).kind, Blame::Kind::nothing);  // without limits none of them ends a run
}

TEST(SkippedUpdatesTest, TheyDoNotHideWhatDivergesLater) {
  std::vector<WatchedUpdate> updates = float16_run(20, 65536);
  skip(updates, 0, 5, 1e12);
  updates[15].rate_before = 0.1;
  updates[15].learning_rate = 100;
  for (size_t i = 16; i < 20; ++i) updates[i].loss = 50;
  updates[19].loss = kOverflow;
  updates[19].is_skipped = true;  // its gradients are not finite either
  const Blame blame = find_fault(updates, kLimits);
  EXPECT_EQ(blame.began.update, 16);
  EXPECT_EQ(blame.not_finite_at, 20);
  EXPECT_FALSE(blame.by_skipping);
}

TEST(SkippedUpdatesTest, ARowOfThemOrAScaleBelowTheLimitEndsARun) {
  std::vector<WatchedUpdate> updates = float16_run(20, 65536);
  skip(updates, 5, 15, 65536);
  EXPECT_TRUE(ends_by_skipping(updates, kLimits));
  updates[19].is_skipped = false;
  EXPECT_FALSE(ends_by_skipping(updates, kLimits));
  updates[19].is_skipped = true;
  updates[10].is_skipped = false;
  EXPECT_FALSE(ends_by_skipping(updates, kLimits));
  updates[19].next_scale = 0.9e-4;
  EXPECT_TRUE(ends_by_skipping(updates, kLimits));
  EXPECT_FALSE(ends_by_skipping(updates, {}));
  EXPECT_FALSE(ends_by_skipping({}, kLimits));
}

TEST(SkippedUpdatesTest, ReportsShowWhereARunBeganToSkipOnly) {
  RecordedRun run;
  EXPECT_EQ(run.first_report_of_skips(), 0u);
  run.reports = {{10, 1, 10}, {20, 1, 20}};
  EXPECT_EQ(run.first_report_of_skips(), 0u);
  run.reports = {{10, 1, 3}, {20, 1, 5}, {30, 1, 15}, {40, 1, 25}};
  EXPECT_EQ(run.first_report_of_skips(), 2u);
  run.reports.push_back({50, 1, 34});
  EXPECT_EQ(run.first_report_of_skips(), 5u);
}

}  // namespace
}  // namespace stoker::train
