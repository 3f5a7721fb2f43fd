// SPDX-License-Identifier: Apache-2.0
// All that is measured and reported of a run while it trains: times of updates and of ranks, windows of reports,
// digests, profiles, the trial of graphs, and the slot between updates. It changes nothing that is trained.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/audit/seen_contents.h"
#include "engine/device/operator_recorder.h"
#include "engine/digest/tensor_digest.h"
#include "engine/group/group.h"
#include "engine/loop/decision.h"
#include "engine/run/events.h"
#include "engine/run/plan.h"
#include "engine/run/step_times.h"
#include "engine/step/learner.h"
#include "engine/step/step_timer.h"
#include "engine/step/updater.h"

namespace stoker::engine {

// Which samples are in both splits: what was read of each is noted, and compared after the first epoch by all ranks.

class SplitOverlap {
 public:
  /// Compares nothing.
  SplitOverlap() = default;
  /// Puts sources in front of `training` and `validation` that note the contents that are read.
  SplitOverlap(std::shared_ptr<const data::Source>& training, std::shared_ptr<const data::Source>& validation);

  /// Notes nothing more: who trained the first epoch has compared.
  void stop();

  /// Validation samples whose content was read in training, too, ascending. Compares once and stops: empty from then
  /// on. All ranks make this call, and each gets what all of them have read. Throws core::Error{peer_lost}.
  std::vector<SharedSample> compare(Group& group);

 private:
  std::shared_ptr<data::SeenContents> seen_in_training_, seen_in_validation_;
};

// The one slot in which others than the trainer may use the learner: between two updates, called while training, for a
// limited time.

class BetweenUpdates {
 public:
  virtual ~BetweenUpdates() = default;
  /// Here it does nothing. Called on the training thread. May run the learner on its own input, and leaves it as it
  /// was: weights, buffers, gradients, random state, training mode, number of threads. Begins nothing once
  /// seconds_allowed is spent. A stop request ends it early, by returning or by core::StopRequested: the trainer sees
  /// the request after notifying its observers of the window. What it returns goes to the observers with the window's
  /// event.
  virtual Findings run(Learner& /*learner*/, const Interlude& /*interlude*/) { return {}; }
};

// Keeps account of where the time of all ranks goes.

/// All ranks make the same calls in the same order. Where this rank is alone, nothing is exchanged and all lists are
/// empty. Lists are by rank, the same on all ranks but for windows that one rank alone has requested.
class RankLedger {
 public:
  explicit RankLedger(Group& group);

  void begin_epoch();
  /// For an update: seconds that the rank that waited least for the others has waited.
  void add_exchange(double seconds) { least_exchange_ += seconds; }
  /// One small exchange. `so_far`: of this rank, since the epoch began. Throws core::Error{peer_lost}.
  void read(const StepTimings& so_far);

  // As of the last read().
  std::vector<RankTimes> since_report();  ///< or since the epoch began; begins the next window
  std::vector<RankTimes> recent();  ///< since the last call, or the epoch's begin; need not be called on all ranks
  std::vector<RankTimes> since_epoch_start() const;

 private:
  Group& group_;
  const std::string host_;
  double least_exchange_ = 0;
  std::vector<RankTotals> now_, at_report_, at_recent_;
};

struct TelemetrySettings {
  int64_t digest_every = 0;      ///< updates; the first has one, too. 0: none
  bool tries_graphs = false;     ///< where launching is found to hold the device up; see GraphTrial
  ComputeCost compute = {};      ///< for observers
  std::string backend = {};      ///< likewise
  std::string items = "images";  ///< likewise: what people call the samples
};

/// All are borrowed, and outlive the telemetry.
struct TelemetryParts {
  Updater& updater;
  StepTimer& timer;  ///< that the updater calls
  const data::Loader& loader;
  Group& group;
  Observer& observer;
  BetweenUpdates& between_updates;  ///< may use the learner in its slot
  OperatorRecorder& operators;      ///< profiles some updates
  SplitOverlap& split_overlap;      ///< finds samples that are in both splits
};

/// The figures that show whether training still learns.
struct TrainingFigures {
  double train_loss = 0;  ///< mean over the images since the last report
  optim::LossScale loss_scale;
};

/// One thread, the one that trains. All ranks make the same calls. Observers listen; `between_updates` is called in one
/// slot between updates, at most for a small share of the run's time.
class RunTelemetry {
 public:
  RunTelemetry(const TelemetrySettings& settings, const TelemetryParts& parts) : settings_(settings), parts_(parts) {}

  /// A run that continues from `at`.
  void start_run(const RunProgress& at, const EpochPlan& plan, const RunLimits& limits);
  void start_epoch();
  /// Calls update(), which computes that of `window`: profiled when it is its turn, watched when its digest is due.
  void watch(const UpdateWindow& window, const std::function<void()>& update);
  void on_update(const RunProgress& at);
  /// Seconds of this update, and of the last decision: see Decisions::after_update().
  double waited_for_ranks();
  void on_decision(const Decision& decision);
  /// Reads from the device, which updates do not. Throws Error{peer_lost}.
  TrainingFigures report(const Run& run);
  void end_epoch() { parts_.timer.end_epoch(); }

  /// The event of the epoch that has just been trained, without what validation finds.
  EpochEvent epoch_event(const RunProgress& at);
  /// Figures of the epoch so far, before an evaluation inside it; until resume_epoch() no time counts as training.
  EpochEvent inside_event(const RunProgress& at);
  /// The epoch continues after `seconds` of something else.
  void resume_epoch(double seconds);
  void on_evaluation(int64_t images_done, int64_t images_total) {
    parts_.observer.on_evaluation(images_done, images_total);
  }
  /// Adds what is found once an epoch is validated.
  void examine_validated(EpochEvent& event) { event.in_both_splits = parts_.split_overlap.compare(parts_.group); }
  /// Adds what is found once an epoch has ended. `run` still stands in it.
  void examine_epoch(const Run& run, EpochEvent& event);
  void on_epoch(const EpochEvent& event) { parts_.observer.on_epoch(event); }

  /// A save that has ended since, if one has.
  void on_saved(std::optional<CheckpointEvent> saved);
  /// A save for which training has waited so long; what it became, where it has ended.
  void on_save(double stall_seconds, std::optional<CheckpointEvent> saved);
  /// float16: what the scaler has come to; zeros without one.
  optim::LossScale read_loss_scale() const;
  /// Once the last checkpoint is written; `event` has what came of an average.
  FinishEvent finish(const Run& run, FinishEvent event = {});

 private:
  struct Figures;
  /// The totals at the last report, from which the next one takes what is new.
  struct Window {
    SumValues sums;
    double wait_seconds = 0;
    std::chrono::steady_clock::time_point begin;
  };
  void on_digest(const RunProgress& at);
  Findings examine(Interlude::After after, const StepTimings& times, const std::vector<RankTimes>& ranks,
                   const Run& run);
  void judge_graphs(const StepTimings& window);
  EpochEvent progress_event(const RunProgress& at) const;
  double slot_seconds_left(const Run& run) const;
  UpdateEvent update_event(const RunProgress& at) const;
  Figures read_figures() const;

  const TelemetrySettings settings_;
  const TelemetryParts parts_;
  RankLedger ranks_{parts_.group};
  GraphTrial graph_trial_;
  StartEvent start_;
  std::optional<ImageDigest> digest_;  ///< digest of the update that was just made, where it is due
  Window last_report_, epoch_begin_;
  double exchanged_ = 0;        ///< seconds of the update under way, before its decision
  double decision_waited_ = 0;  ///< seconds: for the last decision
  double seconds_in_slot_ = 0;  ///< that the work between updates has taken
  CheckpointEvent last_checkpoint_;
  double save_stall_seconds_ = 0;  ///< that training waited for the save under way, or for the last one
};

}  // namespace stoker::engine
