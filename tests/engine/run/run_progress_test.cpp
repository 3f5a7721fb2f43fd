// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run_progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"

namespace stoker::engine {
namespace {

TEST(RunProgressTest, SurvivesJsonBitForBit) {
  RunProgress state;
  state.epoch = 3;
  state.updates = 1234567890123;
  state.epoch_loss_sum = 0.1 + 0.2;
  state.best.value = 1.0 / 3;
  state.best.epoch = 2;
  const core::Json json = core::parse_json(state.to_json().dump(), "x");
  const RunProgress back = RunProgress::from_json(json, "x");
  EXPECT_EQ(back.to_json().dump(), state.to_json().dump());
  EXPECT_EQ(back.epoch_loss_sum, state.epoch_loss_sum);
  EXPECT_EQ(back.updates, state.updates);
}

TEST(RunProgressTest, SmallGainsAddUpToAnImprovement) {
  RunProgress state;
  state.updates = 10;
  for (const double value : {2.0, 1.95, 1.91, 1.89}) {
    ++state.epoch;
    EXPECT_TRUE(state.note_result(value, /*loss=*/1, /*lower_is_better=*/true, /*min_delta=*/0.1, /*is_due=*/true));
    EXPECT_EQ(state.epochs_without_improvement, value == 1.95 ? 1 : value == 1.91 ? 2 : 0) << value;
  }
}

TEST(RunProgressTest, EvaluationsInsideEpochsAreCountedAsSuch) {
  RunProgress state;
  for (const auto& [value, without] : {std::pair{2.0, 0}, {2.5, 1}, {2.1, 2}, {1.0, 0}, {1.0, 1}}) {
    ++state.updates;
    state.note_result(value, /*loss=*/1, /*lower_is_better=*/true, 0, /*is_due=*/true, /*counts_evaluations=*/true);
    EXPECT_EQ(state.epochs_without_improvement, without) << value;
    EXPECT_EQ(state.evaluated_updates, state.updates);
    state.note_result(3, /*loss=*/1, true, 0, /*is_due=*/false, true);
    EXPECT_EQ(state.epochs_without_improvement, without) << "only a stop caused it";
  }
}

TEST(RunProgressTest, OfEqualResultsTheLowerLossIsTheBestOneAndNoImprovement) {
  RunProgress state;
  const double nan = std::nan(""), infinite = std::numeric_limits<double>::infinity();
  const struct {
    double value, loss;
    bool is_best;
    int64_t without;
  } kSteps[] = {{90, infinite, true, 0}, {90, 9, true, 1}, {90, nan, false, 2}, {90, 9, false, 3},
                {80, 0.1, false, 4},     {90, 5, true, 5}, {90, 6, false, 6},   {91, 8, true, 0}};
  for (const auto& step : kSteps) {
    ++state.epoch;
    ++state.updates;
    EXPECT_EQ(state.note_result(step.value, step.loss, /*lower_is_better=*/false, /*min_delta=*/0, true), step.is_best)
        << state.epoch;
    EXPECT_EQ(state.best.epoch == state.epoch - 1, step.is_best) << state.epoch;
    EXPECT_EQ(state.due_best.epoch, state.best.epoch);
    EXPECT_EQ(state.epochs_without_improvement, step.without) << state.epoch;
    state = RunProgress::from_json(core::parse_json(state.to_json().dump(), "x"), "x");
  }
}

TEST(RunProgressTest, OfAStateWithoutLossesTheEarlierOfEqualResultsStays) {
  RunProgress state;
  state.epoch = state.updates = 1;
  state.note_result(90, /*loss=*/5, /*lower_is_better=*/false, 0, /*is_due=*/true);
  core::Json json = state.to_json();
  for (const char* const name : {"best_loss", "due_best_loss", "counted_loss", "latest_loss"}) {
    EXPECT_EQ(json.erase(name), 1u) << name;
  }
  RunProgress read = RunProgress::from_json(json, "x");
  read.epoch = read.updates = 2;
  EXPECT_FALSE(read.note_result(90, /*loss=*/1, /*lower_is_better=*/false, 0, /*is_due=*/true));
  EXPECT_TRUE(read.note_result(91, /*loss=*/9, /*lower_is_better=*/false, 0, /*is_due=*/true));
}

/// The rate after each of `values`, from 0.4 on. Golden numbers: scripts/parity/schedule_golden.py.
void expect_plateau(const std::vector<double>& values, const config::ResolvedScheduleOptions& rule,
                    bool lower_is_better, const std::vector<double>& golden) {
  RunProgress state;
  for (size_t i = 0; i < values.size(); ++i) {
    ++state.updates;
    state.note_for_plateau(values[i], lower_is_better, rule);
    const double rate = 0.4 * std::pow(rule.decay_rate, static_cast<double>(state.rate_cuts.size()));
    EXPECT_NEAR(rate, golden[i], 1e-12) << i;
    state = RunProgress::from_json(core::parse_json(state.to_json().dump(), "x"), "x");
  }
}

TEST(RunProgressTest, PlateauFallsWhereTorchsReduceLROnPlateauDoes) {
  config::ResolvedScheduleOptions rule;
  rule.plateau_patience = 2;
  expect_plateau({50, 60, 60, 60.005, 60.01, 59, 61, 61, 61, 61, 61, 61, 61, 61}, rule, /*lower_is_better=*/false,
                 {0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.04, 0.04, 0.04, 0.004, 0.004});
  rule.decay_rate = 0.5;
  rule.plateau_patience = 1;
  rule.plateau_rest = 2;
  expect_plateau({1, 0.9, 0.95, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.85, 0.849999, std::nan(""), 0.9}, rule,
                 /*lower_is_better=*/true, {0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05});
}

TEST(RunProgressTest, WhatOnlyAStopEvaluatedIsForgottenOnceTheRunGoesOn) {
  RunProgress state;
  state.epoch = 1;
  state.updates = 10;
  EXPECT_TRUE(state.note_result(2, /*loss=*/1, /*lower_is_better=*/true, 0, /*is_due=*/true));
  RunProgress stopped = state;
  stopped.update_in_epoch = 5;
  stopped.updates = 15;
  EXPECT_TRUE(stopped.note_result(1, /*loss=*/1, /*lower_is_better=*/true, 0, /*is_due=*/false));
  EXPECT_EQ(stopped.best.updates, 15);
  EXPECT_EQ(stopped.epochs_without_improvement, 0);
  stopped.drop_results_of_stops();
  EXPECT_EQ(stopped.best.updates, 10);
}

TEST(RunProgressTest, AResultThatIsBarelyBetterIsTheBestOneAndNoImprovement) {
  RunProgress state;
  state.epoch = 1;
  state.updates = 10;
  EXPECT_FALSE(state.note_result(std::nan(""), /*loss=*/1, /*lower_is_better=*/true, 0.1, true));
  EXPECT_EQ(state.best.epoch, -1);
  EXPECT_TRUE(state.note_result(2, /*loss=*/1, /*lower_is_better=*/true, 0.1, true));
  EXPECT_EQ(state.epochs_without_improvement, 0);
  state.epoch = 2;
  EXPECT_TRUE(state.note_result(1.95, /*loss=*/1, /*lower_is_better=*/true, 0.1, true));
  EXPECT_EQ(state.best.epoch, 1);
  EXPECT_EQ(state.epochs_without_improvement, 1);
  EXPECT_EQ(state.counted.epoch, 0);
  state.update_in_epoch = 3;  // cut short by a limit
  EXPECT_TRUE(state.note_result(3, /*loss=*/1, /*lower_is_better=*/false, 0.1, false));
  EXPECT_EQ(state.best.epoch, 2);
  EXPECT_EQ(state.best.updates, 10);
  EXPECT_EQ(state.epochs_without_improvement, 1);
}

/// All counts differ from each other and from those of a new state.
RunProgress state_in_an_epoch() {
  RunProgress state;
  state.epoch = 2;
  state.update_in_epoch = 3;
  state.updates = 23;
  state.images = 700;
  state.learning_rate = 0.5;
  state.epoch_loss_sum = 1.5;
  state.epoch_score_sum = 2.5;
  state.epoch_images = 90;
  state.best.value = 0.25;
  state.best.epoch = 1;
  state.best.updates = 20;
  state.epochs_without_improvement = 4;
  state.train_seconds = 7;
  return state;
}

TEST(RunProgressTest, AnUpdateCountsOnceAndLeavesTheSumsToTheDevice) {
  RunProgress at = state_in_an_epoch();
  at.add_update(/*new_images=*/32, /*rate=*/0.125, /*batch_micro_batches=*/2);
  core::Json expected = state_in_an_epoch().to_json();
  expected["update_in_epoch"] = 4;
  expected["updates"] = 24;
  expected["images"] = 732;
  expected["learning_rate"] = 0.125;
  expected["pieces"] = 2;
  EXPECT_EQ(at.to_json().dump(), expected.dump());
}

TEST(RunProgressTest, TheNextEpochBeginsWithNothingCountedOfIt) {
  RunProgress at = state_in_an_epoch();
  at.begin_next_epoch();
  core::Json expected = state_in_an_epoch().to_json();
  expected["epoch"] = 3;
  expected["update_in_epoch"] = 0;
  expected["epoch_loss_sum"] = 0.0;
  expected["epoch_score_sum"] = 0.0;
  expected["epoch_images"] = 0;
  EXPECT_EQ(at.to_json().dump(), expected.dump());
}

TEST(RunProgressTest, AStateFromBeforeMicroBatchesWereCountedHasOne) {
  RunProgress state;
  state.micro_batches = 4;
  core::Json json = state.to_json();
  EXPECT_EQ(RunProgress::from_json(json, "x").micro_batches, 4);
  json.erase("pieces");
  EXPECT_EQ(RunProgress::from_json(json, "x").micro_batches, 1);
  json["pieces"] = 0;
  EXPECT_THROW(RunProgress::from_json(json, "x"), core::Error);
}

TEST(RunProgressTest, AStateFromBeforeImprovementsHadARecordGoesOnFromItsBest) {
  RunProgress state = state_in_an_epoch();
  state.epochs_without_improvement = 1;
  core::Json json = state.to_json();
  for (const std::string name : {"due_best", "counted", "latest"}) {
    for (const char* const field : {"_value", "_epoch", "_updates"}) json.erase(name + field);
  }
  RunProgress read = RunProgress::from_json(json, "x");
  EXPECT_EQ(read.due_best.updates, 20);
  EXPECT_EQ(read.counted.value, 0.25);
  EXPECT_FALSE(read.latest.exists());
  read.epoch = 3;
  read.update_in_epoch = 0;
  EXPECT_FALSE(read.note_result(0.3, /*loss=*/1, /*lower_is_better=*/true, 0, /*is_due=*/true));
  EXPECT_EQ(read.epochs_without_improvement, 2);
}

TEST(RunProgressTest, NamesTheFieldThatIsMissingOrWrong) {
  core::Json json = RunProgress().to_json();
  json.erase("best_epoch");
  try {
    RunProgress::from_json(json, "state.json");
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_STREQ(error.what(), "state.json: the training state lacks a usable field best_epoch");
  }
  json = RunProgress().to_json();
  for (const core::Json& wrong : {core::Json("many"), core::Json(1.5), core::Json(1e300), core::Json(true),
                                  core::Json(-1), core::Json(18446744073709551615u), core::Json(nullptr)}) {
    json["updates"] = wrong;
    EXPECT_THROW(RunProgress::from_json(json, "x"), core::Error) << wrong;
  }
  EXPECT_THROW(RunProgress::from_json(core::Json::array(), "x"), core::Error);
}

}  // namespace
}  // namespace stoker::engine
