// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/format.h"
#include "loop/tiny_run.h"

namespace stoker::engine {
namespace {

using namespace tiny_run;
namespace fs = std::filesystem;

TEST_F(TrainerTest, Learns) {
  TinyOptions options;
  options.images = 2000;
  TinyRun run(folder_ / "a", options);
  const FinishEvent finish = run.go();
  EXPECT_EQ(finish.reason, StopReason::epochs_done);
  EXPECT_EQ(finish.updates, 3 * 250);
  EXPECT_GT(finish.best_value, 90) << "percent of validation images";
}

TEST_F(TrainerTest, MicroBatchesAddUpToTheLargeBatchIncludingTheShortLastWindow) {
  TinyOptions large, small;
  large.batch_size = 32;  // 103 images: windows of 32, 32, 32 and 7
  small.batch_size = 8;   // the last window has one micro-batch of 7
  small.accumulation = 4;
  TinyRun a(folder_ / "large", large), b(folder_ / "small", small);
  EXPECT_EQ(a.go().updates, b.go().updates);
  EXPECT_TRUE(torch::allclose(a.weight(), b.weight(), 1e-5, 1e-6)) << (a.weight() - b.weight()).abs().max();
}

TEST_F(TrainerTest, AStopAtAnyUpdateThenAResumeGivesTheSameBits) {
  TinyOptions options;
  options.accumulation = 3;  // 5 updates per epoch
  options.mix.mixup_alpha = options.mix.cutmix_alpha = 0.4;
  const torch::Tensor wanted = unbroken_weight(options);
  for (const int64_t update : {1, 4, 5, 6, 10, 14, 15}) {
    const std::string folder = folder_ / ("stop-" + std::to_string(update));
    {
      TinyRun first(folder, options);
      first.recorder_.stop_after_update = update;
      const FinishEvent stopped = first.go();
      EXPECT_EQ(stopped.reason, StopReason::signal);
      EXPECT_EQ(stopped.updates, update) << "the update under way is finished, no other is begun";
    }
    core::request_stop(0);
    TinyRun second(folder, options);
    EXPECT_EQ(second.go().updates, 15);
    EXPECT_TRUE(torch::equal(second.weight(), wanted)) << "stopped after update " << update;
  }
}

TEST_F(TrainerTest, EachOptimizerEndsWithTheSameBitsAfterAStopWithWhateverElseIsOn) {
  using Kind = config::OptimizerKind;
  for (const Kind kind : {Kind::rmsprop, Kind::nadam, Kind::lion, Kind::lamb, Kind::muon}) {
    for (const int extras : {0, 1}) {
      TinyOptions options;
      options.optim.opt = kind;
      options.lr = 0.002;
      options.limits.epochs = 1;
      if (extras == 1) {
        options.accumulation = 2;
        options.clip_grad = 0.5;
        options.ema_decay = 0.9;
        options.mix.mixup_alpha = 0.4;
        options.scaling.enabled = true;
      }
      const std::string name = std::to_string(static_cast<int>(kind)) + std::to_string(extras);
      TinyRun unbroken(folder_ / (name + "unbroken"), options);
      const torch::Tensor before = unbroken.weight();
      if (extras == 1) unbroken.spoil_gradients(2);  // the first update is skipped
      unbroken.go();
      EXPECT_GT((unbroken.weight() - before).abs().max().item<float>(), 1e-4) << name;
      {
        TinyRun first(folder_ / name, options);
        if (extras == 1) first.spoil_gradients(2);
        first.recorder_.stop_after_update = 4;
        first.go();
      }
      core::request_stop(0);
      TinyRun second(folder_ / name, options);
      second.go();
      EXPECT_TRUE(torch::equal(second.weight(), unbroken.weight())) << name;
      EXPECT_EQ(second.learner().optimizer->steps_taken(), unbroken.learner().optimizer->steps_taken()) << name;
    }
  }
}

TEST_F(TrainerTest, AStopRequestInTheSlotBetweenUpdatesLosesNeitherCheckpointNorRow) {
  const TinyOptions options;
  const torch::Tensor wanted = unbroken_weight(options);
  for (const bool after_epoch : {false, true}) {
    const std::string folder = folder_ / (after_epoch ? "epoch" : "report");
    {
      TinyRun first(folder, options);
      first.slot_.stops_after_epochs = after_epoch;
      first.slot_.stop_at_call = after_epoch ? 2 : 16;  // of 13 updates and reports per epoch
      const FinishEvent stopped = first.go();
      EXPECT_EQ(stopped.reason, StopReason::signal);
      EXPECT_EQ(stopped.updates, after_epoch ? 26 : 16);
      EXPECT_EQ(first.checkpoints().files().list().front(), stopped.updates);
      EXPECT_EQ(first.recorder_.epochs.size(), after_epoch ? 2u : 1u) << "every epoch that is saved has its row";
    }
    core::request_stop(0);
    TinyRun second(folder, options);
    EXPECT_EQ(second.go().updates, 39);
    EXPECT_EQ(second.recorder_.epochs.size(), after_epoch ? 1u : 2u);
    EXPECT_TRUE(torch::equal(second.weight(), wanted));
  }
}

TEST_F(TrainerTest, AStopRequestInAValidationLosesNeitherCheckpointNorRow) {
  const TinyOptions options;
  const torch::Tensor wanted = unbroken_weight(options);
  const std::string folder = folder_ / "stopped";
  {
    TinyRun first(folder, options);
    first.recorder_.stop_in_validation = 2;
    const FinishEvent stopped = first.go();
    EXPECT_EQ(stopped.reason, StopReason::signal);
    EXPECT_EQ(stopped.updates, 26);
    EXPECT_EQ(first.checkpoints().files().list().front(), 26);
    EXPECT_EQ(first.recorder_.epochs.size(), 1u) << "the second epoch has no result yet";
  }
  core::request_stop(0);
  TinyRun second(folder, options);
  EXPECT_EQ(second.go().updates, 39);
  ASSERT_EQ(second.recorder_.epochs.size(), 2u) << "the second epoch is validated again";
  EXPECT_EQ(second.recorder_.epochs[0].epoch, 1);
  EXPECT_EQ(second.recorder_.epochs[0].updates, 26);
  EXPECT_TRUE(torch::equal(second.weight(), wanted));
}

TEST_F(TrainerTest, TheSlotIsToldItsTimeAndItsFindingsReachTheListeners) {
  const TinyOptions options;
  TinyRun run(folder_ / "a", options);
  run.recorder_.stop_after_update = 20;
  run.go();
  const std::vector<Interlude>& calls = run.slot_.calls;
  ASSERT_EQ(calls.size(), 13u + 1 + 7) << "once per report and once per epoch";
  EXPECT_EQ(calls[13].after, Interlude::After::epoch);
  EXPECT_EQ(run.recorder_.epochs.at(0).found.diagnosis.value().advice, "call 14");
  EXPECT_TRUE(calls[0].is_first_epoch);
  EXPECT_FALSE(calls[14].is_first_epoch);
  EXPECT_EQ(calls[0].epochs_left, 2);
  EXPECT_GT(calls[0].seconds_allowed, 0);
  EXPECT_EQ(calls.back().seconds_allowed, 0) << "a stop was requested";
}

TEST_F(TrainerTest, WhatIsMeasuredInTheSlotIsNoCostOfReports) {
  const TinyOptions options;
  TinyRun run(folder_ / "a", options);
  run.slot_.takes = std::chrono::milliseconds(10);
  run.go();
  const StepTimings& times = run.recorder_.epochs.at(0).times;
  const double slept = 13 * 0.010, all = times.parts[StepPart::other].mean_seconds * static_cast<double>(times.updates);
  EXPECT_GE(all, 0.9 * slept);
}

/// An observer that breaks its contract, or loses a record.
class Thrower : public Observer {
 public:
  bool looks_for_stops = false;
  void on_epoch(const EpochEvent&) override {
    if (looks_for_stops) throw core::StopRequested{};
    throw core::Error(core::ErrorKind::io, "the disk is full");
  }
};

TEST_F(TrainerTest, AListenerThatLooksForStopRequestsIsABugAndALostRecordEndsTheRun) {
  for (const bool looks_for_stops : {true, false}) {
    Thrower thrower;
    thrower.looks_for_stops = looks_for_stops;
    TinyRun run(folder_ / (looks_for_stops ? "bug" : "lost"), {});
    run.observers_.add(thrower);
    try {
      run.go();
      FAIL() << "no error";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), looks_for_stops ? core::ErrorKind::bug : core::ErrorKind::io);
    }
    EXPECT_TRUE(run.checkpoints().files().list().empty()) << "no checkpoint records an epoch as done that has no row";
  }
}

TEST_F(TrainerTest, SavesEverySoManyUpdatesTheLastOnesOfEpochsIncluded) {
  TinyOptions options;
  options.images = 48;  // 6 updates per epoch
  options.save_every = config::Interval::updates(4);
  TinyRun run(folder_ / "a", options);
  run.go();
  std::vector<int64_t> saved_on_time;
  for (const int64_t updates : run.recorder_.saved_at) {
    if (updates % 4 == 0) saved_on_time.push_back(updates);
  }
  EXPECT_EQ(saved_on_time, (std::vector<int64_t>{4, 8, 12, 16}));
}

TEST_F(TrainerTest, OneCycleMovesTheMomentumAsWell) {
  TinyOptions constant, at_its_value, moving;
  constant.schedule.sched = config::ScheduleKind::one_cycle;
  constant.schedule.one_cycle_momentum = false;
  at_its_value.schedule.sched = moving.schedule.sched = config::ScheduleKind::one_cycle;
  at_its_value.schedule.one_cycle_base_momentum = at_its_value.schedule.one_cycle_max_momentum = 0.9;
  TinyRun a(folder_ / "constant", constant), b(folder_ / "at-its-value", at_its_value), c(folder_ / "moving", moving);
  a.go();
  b.go();
  c.go();
  EXPECT_TRUE(torch::equal(a.weight(), b.weight()));
  EXPECT_FALSE(torch::allclose(a.weight(), c.weight(), 1e-2, 1e-3));
}

TEST_F(TrainerTest, EachMicroBatchIsMixedInItsOwnWay) {
  TinyOptions options;
  options.images = 8;  // one update of two batches
  options.batch_size = 4;
  options.accumulation = 2;
  options.limits.epochs = 1;
  options.mix.mixup_alpha = 0.4;
  const Mix first = draw_mix(options.mix, /*epoch=*/0, /*batch=*/0, 4, 4);
  const Mix second = draw_mix(options.mix, 0, 1, 4, 4);
  ASSERT_GT(std::abs(first.lambda - second.lambda), 0.01);
  TinyRun run(folder_ / "run", options), by_hand(folder_ / "by hand", options);
  run.go();
  by_hand.update_by_hand({first, second});
  EXPECT_TRUE(torch::equal(run.weight(), by_hand.weight()));
}

TEST_F(TrainerTest, TheEpochThatWasInterruptedReportsTheSameLoss) {
  TinyOptions options;
  TinyRun unbroken(folder_ / "unbroken", options);
  unbroken.go();
  {
    TinyRun first(folder_ / "a", options);
    first.recorder_.stop_after_update = 6;
    first.go();
    EXPECT_TRUE(first.recorder_.epochs.empty());
  }
  core::request_stop(0);
  TinyRun second(folder_ / "a", options);
  second.go();
  ASSERT_EQ(second.recorder_.epochs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(second.recorder_.epochs[i].train_loss, unbroken.recorder_.epochs[i].train_loss);
    EXPECT_EQ(second.recorder_.epochs[i].eval_loss, unbroken.recorder_.epochs[i].eval_loss);
    EXPECT_EQ(second.recorder_.epochs[i].images, 103);
  }
}

TEST_F(TrainerTest, MaxUpdatesStopsInsideAnEpochAndARaisedLimitGoesOnFromThere) {
  TinyOptions options;
  const torch::Tensor wanted = unbroken_weight(options);
  TinyOptions limited = options;
  limited.limits.max_updates = 20;  // 13 updates per epoch
  {
    TinyRun first(folder_ / "a", limited);
    const FinishEvent finish = first.go();
    EXPECT_EQ(finish.reason, StopReason::max_updates);
    EXPECT_EQ(finish.updates, 20);
    EXPECT_TRUE(first.recorder_.epochs.back().has_eval) << "the end of a run is always validated";
  }
  TinyRun second(folder_ / "a", options);
  EXPECT_EQ(second.go().updates, 39);
  EXPECT_TRUE(torch::equal(second.weight(), wanted));
}

TEST_F(TrainerTest, PatienceEndsARunThatNoLongerImproves) {
  TinyOptions options;
  options.lr = 0;
  options.limits.patience = 1;
  TinyRun run(folder_ / "a", options);
  const FinishEvent finish = run.go();
  EXPECT_EQ(finish.reason, StopReason::no_improvement);
  EXPECT_EQ(finish.epochs_done, 2);
}

/// Where the run stands, but for its clock.
core::Json state_of(TinyRun& run) {
  const std::string path = run.checkpoints().files().newest_verified();
  core::Json state = read_progress(path).to_json();
  state.erase("train_seconds");
  return state;
}

TEST_F(TrainerTest, StopsInsideEpochsLeaveNoTraceInTheStateThatARunEndsWith) {
  TinyOptions options;  // 13 updates per epoch
  options.limits.epochs = 12;
  options.limits.patience = 4;
  struct Case {
    const char* name;
    double lr;
    config::Interval val_every;
    int64_t ends_after, between_stops;
  };
  const auto epochs = config::Interval::epochs, updates = config::Interval::updates;
  for (const Case& one : {Case{"learns", 0.05, epochs(1), 12, 17}, Case{"rests", 0, epochs(1), 5, 5},
                          Case{"every-second", 0, epochs(2), 6, 5}, Case{"every-third", 0, epochs(3), 9, 13},
                          Case{"inside", 0, updates(4), 1, 3}, Case{"inside-at-stops", 0, updates(4), 1, 4},
                          Case{"inside-learns", 0.05, updates(5), 12, 11}, Case{"quarters", 0, updates(3.25), 1, 2},
                          Case{"plateau", 0.01, updates(3), 12, 7}}) {
    options.lr = one.lr;
    options.val_every = one.val_every;
    options.limits.max_updates = 0;
    const bool has_plateau = std::string(one.name) == "plateau";
    options.schedule.sched = has_plateau ? config::ScheduleKind::plateau : config::ScheduleKind::constant;
    options.schedule.decay_rate = 0.5;
    options.schedule.plateau_patience = 1;
    options.limits.patience = has_plateau ? 0 : 4;
    TinyRun unbroken(folder_ / one.name, options);
    const FinishEvent finish = unbroken.go();
    EXPECT_EQ(has_plateau, !read_progress(unbroken.checkpoints().files().newest_verified()).rate_cuts.empty());
    EXPECT_TRUE(one.lr > 0 || finish.epochs_done == one.ends_after) << one.name << " " << finish.epochs_done;
    const std::string folder = folder_ / (std::string(one.name) + "-stopped");
    for (int64_t limit = one.between_stops;; limit += one.between_stops) {
      options.limits.max_updates = limit;
      TinyRun part(folder, options);
      const FinishEvent stopped = part.go();
      if (stopped.reason == StopReason::max_updates && stopped.updates < finish.updates) {
        EXPECT_GE(part.checkpoints().files().pointed("best"), 0) << "what a stop has evaluated may be best";
        continue;
      }
      EXPECT_EQ(stopped.epochs_done, finish.epochs_done) << one.name;
      EXPECT_EQ(state_of(part), state_of(unbroken)) << one.name;
      EXPECT_EQ(part.checkpoints().files().pointed("best"), unbroken.checkpoints().files().pointed("best"));
      EXPECT_TRUE(torch::equal(part.weight(), unbroken.weight()));
      break;
    }
  }
}

/// The part of the row of each event that a resumed run repeats.
std::vector<std::string> rows_of(const std::vector<EpochEvent>& events) {
  std::vector<std::string> rows;
  for (const EpochEvent& event : events) {
    rows.push_back(core::format("{} {} {} {} {:.17g} {:.17g} {} {:.17g}", event.epoch, event.updates, event.is_inside,
                                event.images, event.train_loss, event.eval_loss, event.is_best, event.best_value));
  }
  return rows;
}

TEST_F(TrainerTest, AnEvaluationInsideAnEpochIsMadeOnceWhereverASignalStopsTheRun) {
  TinyOptions options;  // 13 updates per epoch
  options.val_every = config::Interval::updates(5);
  options.limits.epochs = 2;
  TinyRun unbroken(folder_ / "unbroken", options);
  unbroken.go();
  std::vector<int64_t> evaluated, inside;
  for (const EpochEvent& event : unbroken.recorder_.epochs) {
    if (event.has_eval) evaluated.push_back(event.updates);
    if (event.is_inside) inside.push_back(event.updates);
  }
  EXPECT_EQ(inside, (std::vector<int64_t>{5, 10, 15, 20, 25}));
  EXPECT_EQ(evaluated, (std::vector<int64_t>{5, 10, 15, 20, 25, 26})) << "the end of a run is evaluated, too";
  for (const EpochEvent& event : unbroken.recorder_.epochs) {
    const std::vector<int64_t>& saved = unbroken.recorder_.saved_at;
    EXPECT_TRUE(!event.is_best || std::count(saved.begin(), saved.end(), event.updates) == 1) << event.updates;
  }
  for (int64_t stop = 1; stop < 26; ++stop) {
    for (const int64_t in_evaluation : {0, 1}) {
      const std::string folder = folder_ / core::format("stop-{}-{}", stop, in_evaluation);
      std::vector<EpochEvent> events;
      {
        TinyRun first(folder, options);
        (in_evaluation ? first.recorder_.stop_in_validation : first.recorder_.stop_after_update) = stop;
        first.go();
        events = first.recorder_.epochs;
      }
      core::request_stop(0);
      TinyRun second(folder, options);
      second.go();
      events.insert(events.end(), second.recorder_.epochs.begin(), second.recorder_.epochs.end());
      EXPECT_EQ(rows_of(events), rows_of(unbroken.recorder_.epochs)) << "stopped after update " << stop;
      EXPECT_EQ(state_of(second), state_of(unbroken));
      EXPECT_TRUE(torch::equal(second.weight(), unbroken.weight()));
      if (in_evaluation && stop > 6) break;
    }
  }
}

TEST_F(TrainerTest, EvaluationsByTheClockLeaveTheWeightsAsTheyAre) {
  TinyOptions options;
  const torch::Tensor wanted = unbroken_weight(options);
  options.val_every = config::Interval::seconds(1e-9);
  TinyRun run(folder_ / "by-clock", options);
  run.go();
  EXPECT_EQ(run.recorder_.epochs.size(), 39u) << "after each update, an epoch's last one among them";
  EXPECT_TRUE(torch::equal(run.weight(), wanted));
}

TEST_F(TrainerTest, ARunWithoutValidationDataTrainsTheSameWeightsAndHasNoBest) {
  TinyOptions options;
  const torch::Tensor wanted = unbroken_weight(options);
  options.can_validate = false;
  TinyRun run(folder_ / "alone", options);
  const FinishEvent finish = run.go();
  EXPECT_EQ(finish.best_epoch, -1);
  EXPECT_EQ(run.checkpoints().files().pointed("last"), 39);
  EXPECT_EQ(run.checkpoints().files().pointed("best"), -1);
  for (const EpochEvent& event : run.recorder_.epochs) EXPECT_FALSE(event.has_eval);
  EXPECT_TRUE(torch::equal(run.weight(), wanted));
}

TEST_F(TrainerTest, CheckpointsOfKeepEveryStayWhateverStopsTheRun) {
  TinyOptions options;  // 13 updates per epoch
  options.kept.every = 10;
  for (const int64_t stop : {0, 3, 10, 17}) {
    const std::string folder = folder_ / std::to_string(stop);
    for (const int64_t limit : {stop, int64_t{0}}) {
      options.limits.max_updates = limit;
      TinyRun(folder, options).go();
    }
    const std::vector<int64_t> there = CheckpointFiles(folder).list();
    for (const int64_t kept : {10, 20, 30}) EXPECT_EQ(std::count(there.begin(), there.end(), kept), 1) << stop;
  }
}

TEST_F(TrainerTest, TheAverageOfTheLastCheckpointsIsThatOfAnUnbrokenRun) {
  TinyOptions options;  // 13 updates per epoch
  options.kept = {0, /*average_last=*/3, /*average_every=*/5};
  options.save_every = config::Interval::updates(5);
  options.ema_decay = 0.9;
  TinyRun unbroken(folder_ / "unbroken", options);
  const FinishEvent finish = unbroken.go();
  EXPECT_EQ(finish.averaged, 3);
  EXPECT_TRUE(finish.average_value && finish.last_value);
  const CheckpointFiles& files = unbroken.checkpoints().files();
  torch::Tensor sum = torch::zeros({4, 16}, torch::kDouble);
  for (const int64_t updates : {39, 35, 30}) {
    for (const NamedTensor& entry : load_saved_model(files.path_of(updates)).weights) {
      if (entry.name == "fc.weight") sum += entry.tensor.to(torch::kDouble);
    }
  }
  const auto average_in = [&](const std::string& folder) {
    const SavedModel saved = load_saved_model(folder_ / (folder + "/" + kAverageFolder));
    const auto found = std::find_if(saved.weights.begin(), saved.weights.end(),
                                    [](const NamedTensor& entry) { return entry.name == "fc.weight"; });
    return found->tensor;
  };
  EXPECT_TRUE(torch::equal(average_in("unbroken"), (sum / 3).to(torch::kFloat)));
  EXPECT_TRUE(torch::equal(unbroken.weight(), average_in("unbroken")));
  for (const int64_t limit : {31, 32, 33, 34, 36, 37, 38, 0}) {  // each leaves a checkpoint
    options.limits.max_updates = limit;
    TinyRun part(folder_ / "stopped", options);
    part.go();
  }
  EXPECT_TRUE(torch::equal(average_in("stopped"), average_in("unbroken")));
  fs::remove_all(folder_ / (std::string("stopped/") + kAverageFolder));
  EXPECT_EQ(TinyRun(folder_ / "stopped", options).go().averaged, 3) << "killed before it was written";
}

TEST_F(TrainerTest, AnEpochThatALimitCutsShortIsToldAsOne) {
  TinyOptions options;
  options.limits.max_updates = 20;
  TinyRun run(folder_ / "a", options);
  run.go();
  ASSERT_EQ(run.recorder_.epochs.size(), 2u);
  EXPECT_FALSE(run.recorder_.epochs[0].is_cut_short);
  EXPECT_TRUE(run.recorder_.epochs[1].is_cut_short);
  EXPECT_EQ(run.recorder_.epochs[1].update_in_epoch, 7);
}

TEST_F(TrainerTest, DivergenceIsAnErrorAndOverwritesNoCheckpoint) {
  TinyOptions good;
  good.limits.epochs = 1;
  TinyRun(folder_ / "a", good).go();
  TinyOptions bad;
  bad.lr = std::numeric_limits<double>::infinity();
  TinyRun run(folder_ / "a", bad);
  try {
    run.go();
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::diverged);
    EXPECT_NE(std::string(error.what()).find("training diverged: the loss is"), std::string::npos) << error.what();
  }
  EXPECT_EQ(run.checkpoints().files().list(), std::vector<int64_t>{13});
}

}  // namespace
}  // namespace stoker::engine
