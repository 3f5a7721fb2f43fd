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
#include "engine/run/cadence.h"
#include "engine/run/events.h"
#include "engine/run/plan.h"
#include "engine/run/run_progress.h"
#include "engine/step/step_timer.h"
#include "engine/step/update_step.h"
#include "engine/task/evaluate.h"
#include "engine/task/metrics.h"
#include "engine/task/worst_samples.h"
#include "optim/schedule.h"

namespace stoker::engine {

struct TrainerSettings {
  EpochPlan plan;
  RunLimits limits;
  UpdateSettings update;
  MixSettings mix;
  config::TestTimeAugmentation tta = config::TestTimeAugmentation::none;
  config::EvalMetric eval_metric = config::EvalMetric::loss;
  double min_delta = 0;
  config::Interval val_every, save_every, report_every;
  bool auto_micro_batch = false;  ///< out of memory: halve what is computed at once and do the update again
};

struct TrainerParts {
  const Task& task;
  Learner& learner;
  data::DeviceFeed& train_feed;
  data::DeviceFeed& val_feed;
  const optim::Schedule& schedule;
  Checkpoints& checkpoints;
  Observer& observer;
};

class Trainer {
 public:
  Trainer(const TrainerSettings& settings, const TrainerParts& parts);

  /// Trains from `at` until an end is reached or a stop is requested; the last checkpoint then holds everything.
  /// Throws core::Error: diverged, data (a bad image), io (a checkpoint could not be written).
  FinishEvent run(RunProgress at);

 private:
  enum class EpochEnd { complete, limit, stopped };

  EpochEnd train_epoch(RunProgress& at);
  void do_update(const UpdateWindow& window, RunProgress& at);
  int64_t gather_gradients(const UpdateWindow& window, const RunProgress& at);
  bool trains_on_one(const data::Batch& batch);
  int64_t gather_in_smaller_pieces(const UpdateWindow& window, RunProgress& at);
  void halve_pieces(RunProgress& at, const std::string& cause);
  void finish_epoch(RunProgress& at, EpochEnd end);
  EpochEvent summarize_epoch(const RunProgress& at);
  void validate(RunProgress& at, EpochEvent& event);
  EvalReport evaluate_learner(WorstSamples& worst);
  bool note_result(RunProgress& at, const EvalReport& report) const;
  void report(const RunProgress& at);
  void read_sums(RunProgress& at);
  void save(const RunProgress& at, bool is_best);
  FinishEvent finish(const RunProgress& at, StopReason reason);
  UpdateEvent update_event(const RunProgress& at) const;

  TrainerSettings settings_;
  const Task& task_;
  Learner& learner_;
  data::DeviceFeed& train_feed_;
  data::DeviceFeed& val_feed_;
  const optim::Schedule& schedule_;
  Checkpoints& checkpoints_;
  Observer& observer_;

  StepTimer timer_;
  UpdateStep step_;
  std::optional<bool> trains_on_one_;  ///< whether the network can train on a batch of one image; tried when one comes
  RunningSums sums_;
  Cadence save_every_, report_every_;
  Cadence val_every_;
  std::chrono::steady_clock::time_point run_begin_;
  double seconds_before_ = 0;  ///< of training by earlier processes
  CheckpointEvent last_checkpoint_;
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
