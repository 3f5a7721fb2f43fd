// SPDX-License-Identifier: Apache-2.0
// The training loop. Read trainer.cpp to learn what training does here; everything that it calls is a part that
// is handed in. Knows nothing of consoles, files, flags or how the parts were made.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "config/options.h"
#include "data/feed/device_feed.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/device/operator_recorder.h"
#include "engine/digest/image_digest.h"
#include "engine/loop/between_updates.h"
#include "engine/loop/decision.h"
#include "engine/loop/divergence.h"
#include "engine/loop/rank_ledger.h"
#include "engine/loop/split_overlap.h"
#include "engine/run/cadence.h"
#include "engine/run/events.h"
#include "engine/run/graph_trial.h"
#include "engine/run/plan.h"
#include "engine/run/run_progress.h"
#include "engine/step/step_timer.h"
#include "engine/step/updater.h"
#include "engine/task/evaluate.h"
#include "engine/task/worst_samples.h"
#include "optim/schedule.h"

namespace stoker::engine {

struct TrainerSettings {
  EpochPlan plan;
  RunLimits limits;
  UpdaterSettings updater;
  config::TestTimeAugmentation tta = config::TestTimeAugmentation::none;
  config::EvalMetric eval_metric = config::EvalMetric::loss;
  double min_delta = 0;
  config::Interval val_every, save_every, report_every;
  SkipLimits skips;
  int64_t digest_every = 0;      ///< updates; the first has one, too. 0: none
  bool tries_graphs = false;     ///< where launching is found to hold the device up; see GraphTrial
  ComputeCost compute = {};      ///< for listeners
  std::string backend = {};      ///< likewise
  std::string items = "images";  ///< for listeners: what people call the samples
};

/// All are borrowed, and outlive the trainer.
struct TrainerParts {
  const Task& task;
  Learner& learner;
  data::DeviceFeed& train_feed;
  data::DeviceFeed& val_feed;
  const optim::Schedule& schedule;
  Checkpoints& checkpoints;
  Observer& observer;
  BetweenUpdates* between_updates = nullptr;  ///< may use the learner in its slot; nullptr: nobody does
  Group* group = nullptr;                     ///< the ranks that train together; nullptr: this one is alone
  GraphRunner* graphs = nullptr;              ///< records updates; nullptr: they are not recorded
  OperatorRecorder* operators = nullptr;      ///< profiles some updates; nullptr: none
  SplitOverlap* split_overlap = nullptr;      ///< finds samples that are in both splits; nullptr: nobody asks
};

/// What the host learns of training, in one read.
struct DeviceFigures {
  SumValues sums;
  double gradient_norm = -1;         ///< -1: not measured
  optim::LossScale loss_scale = {};  ///< zeros without a loss scaler
};

/// Nobody else drives the learner while run() is under way: observers listen, and `between_updates` is called in one
/// slot between updates, at most for a small share of the run's time. One thread.
///
/// What holds of the run's state `at` in between the private steps:
///  - Weights, optimizer, average and loss scale are those after `at.updates` updates; `at.update_in_epoch`,
///    `at.images`, `at.learning_rate` and `at.micro_batches` agree with them. An update is done as a whole or not at
///    all.
///  - The epoch's sums lie on the device, in updater_.sums(); `at` has them after read_sums(), which comes before
///    whatever saves `at`.
///  - `at.epoch` moves on in finish_epoch() alone, after validation. What ends the run earlier leaves `at` at the end
///    of the epoch under way (`at.update_in_epoch` == plan.updates()): a resume validates again, and goes on from
///    there.
///  - Observers hear of a finished epoch before a checkpoint says that it is finished.
///
/// A checkpoint is written beside training: an error of that ends the run after the next update, at the next save or at
/// the end, whichever comes first. run() returns once the last one is written and verified.
///
/// A stop request is looked for after each update and at each epoch's end. It also ends a wait for data, a validation
/// and the work in the slot. In every case run() saves `at` and returns with StopReason::signal.
class Trainer {
 public:
  Trainer(const TrainerSettings& settings, const TrainerParts& parts);

  /// Trains from `at` until a limit is reached or a stop is requested; the last checkpoint then holds everything.
  /// Throws core::Error: diverged, data (a bad image), io (a checkpoint or a record could not be written),
  /// out_of_memory.
  FinishEvent run(RunProgress at);

 private:
  enum class EpochEnd { complete, limit, stopped };

  void begin_run(RunProgress& at);
  EpochEnd train_epoch(RunProgress& at);
  void do_update(RunProgress& at);
  Decision decide(RunProgress& at);
  Decision finish_epoch(RunProgress& at, EpochEnd end);
  void refuse_useless_epoch(const RunProgress& at, double train_loss);
  void validate(RunProgress& at, EpochEvent& event);
  EvalReport evaluate_learner(WorstSamples& worst);
  bool note_result(RunProgress& at, const EvalReport& report) const;
  void save(const RunProgress& at, bool is_best);
  void note_saved(std::optional<CheckpointEvent> saved);
  FinishEvent finish(const RunProgress& at, StopReason reason);

  // In trainer_report.cpp: what listeners are told.
  void report(const RunProgress& at);
  void tell_digest(const RunProgress& at, ImageDigest& images);
  EpochEvent summarize_epoch(const RunProgress& at);
  Findings examine(Interlude::After after, const StepTimings& times, const std::vector<RankTimes>& ranks,
                   const RunProgress& at);
  void judge_graphs(const StepTimings& window);
  double slot_seconds_left(const RunProgress& at) const;
  UpdateEvent update_event(const RunProgress& at) const;
  DeviceFigures read_figures() const;
  void read_sums(RunProgress& at) const;

  TrainerSettings settings_;
  const Task& task_;
  Learner& learner_;
  data::DeviceFeed& train_feed_;
  data::DeviceFeed& val_feed_;
  const optim::Schedule& schedule_;
  Checkpoints& checkpoints_;
  Observer& observer_;
  BetweenUpdates* const between_updates_;
  OperatorRecorder* const operators_;
  SplitOverlap* const split_overlap_;

  StepTimer timer_;
  Updater updater_;
  Group* const group_;  ///< null: alone
  const RankShare share_;
  EpochFeed batches_;
  Decisions decisions_;
  RankLedger ranks_;
  GraphTrial graph_trial_;
  double decision_waited_ = 0;  ///< seconds: for the last decision
  Cadence val_every_;
  StartEvent start_;
  std::chrono::steady_clock::time_point run_begin_;
  double seconds_before_ = 0;   ///< of training by earlier processes
  double seconds_in_slot_ = 0;  ///< that the work between updates has taken
  CheckpointEvent last_checkpoint_;
  double save_stall_seconds_ = 0;                 ///< that training waited for the save under way, or for the last one
  int64_t bad_samples_ = 0;                       ///< that the loaders of all ranks count
  std::pair<int64_t, int64_t> saved_at_{-1, -1};  ///< epoch and updates of the last checkpoint

  /// What the last report saw, to tell what is new in the next one.
  struct Window {
    SumValues sums;
    double wait_seconds = 0;
    std::chrono::steady_clock::time_point begin;
  };
  Window last_report_;
  Window epoch_begin_;
};

}  // namespace stoker::engine
