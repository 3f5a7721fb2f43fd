// SPDX-License-Identifier: Apache-2.0
// The training loop. Read trainer.cpp to learn what training does here; everything that it calls is a part that is
// handed in. It depends on no console, file or flag, nor on how the parts were made.
#pragma once

#include <utility>

#include "config/options.h"
#include "data/feed/device_feed.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/group/group.h"
#include "engine/loop/decision.h"
#include "engine/loop/run_telemetry.h"
#include "engine/run/events.h"
#include "engine/run/plan.h"
#include "engine/step/updater.h"
#include "optim/schedule.h"

namespace stoker::engine {

struct TrainerSettings {
  EpochPlan plan;
  RunLimits limits;
  UpdaterSettings updater;
  TelemetrySettings telemetry;
  config::TestTimeAugmentation tta = config::TestTimeAugmentation::none;
  config::EvalMetric eval_metric = config::EvalMetric::loss;
  double min_delta = 0;
  bool can_validate = true;  ///< false: there are no data for it; then nothing is the best
  config::Interval val_every, save_every, report_every;
  int64_t statistics_images = 0;  ///< by which batch norm's running statistics are measured after the last update
  config::Interval keep_every;    ///< checkpoints that stay; updates or never
  bool averages = false;          ///< the last checkpoints, in the end
  SkipLimits skips;
};

/// All are borrowed, and outlive the trainer.
struct TrainerParts {
  Updater& updater;  ///< updates the weights of the learner
  data::DeviceFeed& train_feed;
  data::DeviceFeed& val_feed;
  const optim::Schedule& schedule;
  Checkpoints& checkpoints;
  Group& group;  ///< the ranks that train together
  RunTelemetry& telemetry;
};

/// Only run() uses the learner while it is under way, but for the slot between updates that RunTelemetry gives. One
/// thread.
///
/// These hold between the private steps, of a run and where it stands, `run.at`:
///  - Weights, optimizer, average and loss scale are those after `at.updates` updates; `at.update_in_epoch`,
///    `at.images`, `at.learning_rate` and `at.micro_batches` agree with them. An update is done as a whole or not at
///    all.
///  - The epoch's sums lie on the device, in Updater::sums(), until with_sums() reads them before `at` is saved.
///  - `at.epoch` moves on in finish_epoch() alone, after validation. What ends the run earlier leaves `at` at the end
///    of the epoch under way (`at.update_in_epoch` == plan.updates()): a resume validates again, and continues from
///    there. Likewise an evaluation inside an epoch that a stop left out, or cut short, is made first on resume.
///  - Observers hear of a finished epoch before a checkpoint records that it is finished.
///
/// A checkpoint is written beside training: an error of that ends the run after the next update, at the next save or at
/// the end, whichever comes first. run() returns once the last one is written and verified.
///
/// A stop request is looked for after each update and at each epoch's end. It also ends a wait for data, a validation
/// and the work in the slot. In every case run() saves where it stands and returns with StopReason::signal.
class Trainer {
 public:
  Trainer(const TrainerSettings& settings, const TrainerParts& parts);

  /// Trains on from `from` until a limit is reached or a stop is requested; the last checkpoint then holds everything.
  /// Throws core::Error: diverged, data (a bad image), io (a checkpoint or a record could not be written),
  /// out_of_memory, peer_lost.
  FinishEvent run(const RunProgress& from);

 private:
  void train_epoch(Run& run);
  void start_epoch(const RunProgress& at);
  bool update(Run& run);
  Decision decide(Run& run);
  bool evaluate_inside(Run& run);
  void finish_epoch(Run& run);
  void validate(RunProgress& at, bool is_due, EpochEvent& event);
  /// Logs that the schedule has just lowered the learning rate.
  void report_cut(const Run& run);
  bool measure_statistics(const RunProgress& at);
  void check_learning(const RunProgress& at, const TrainingFigures& figures);
  RunProgress with_sums(RunProgress at) const;
  void save(const RunProgress& at);
  void average_last(const Run& run, FinishEvent& event);
  FinishEvent finish(const Run& run);

  const TrainerSettings settings_;
  Updater& updater_;
  data::DeviceFeed& train_feed_;
  data::DeviceFeed& val_feed_;
  const optim::Schedule& schedule_;
  Checkpoints& checkpoints_;
  Group& group_;
  RunTelemetry& telemetry_;

  EpochFeed batches_;
  Decisions decisions_;
  int64_t bad_samples_ = 0;                       ///< that the loaders of all ranks count
  std::pair<int64_t, int64_t> saved_at_{-1, -1};  ///< epoch and updates of the last checkpoint
};

}  // namespace stoker::engine
