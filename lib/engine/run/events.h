// SPDX-License-Identifier: Apache-2.0
// The events of a run, as plain values, and the interface of their observers. The loop depends on this file, on no
// console or file; the observe module implements it. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/loader/loader_stats.h"
#include "engine/run/compute_cost.h"
#include "engine/run/findings.h"
#include "engine/run/rank_times.h"
#include "engine/run/step_times.h"

namespace stoker::engine {

enum class MetricUnit {
  percent,
  ratio,  ///< 0 to 1, or below for r2
  degrees,
  number  ///< in the unit of the targets
};

/// A figure by name. NaN: undefined, as the area under a curve is when there is one class only.
struct Metric {
  std::string name;  ///< "top1": the column eval_top1
  MetricUnit unit = MetricUnit::number;
  double value = 0;
};

/// After every optimizer update; costs no host sync, so it carries no loss.
struct UpdateEvent {
  int64_t epoch = 0;            ///< 0-based
  int64_t update_in_epoch = 0;  ///< done in this epoch
  int64_t updates = 0;          ///< done in the run
  int64_t images_in_epoch = 0;
  double learning_rate = 0;
};

/// At the report interval: the one host sync of the loop has been paid.
struct ReportEvent {
  UpdateEvent at;
  double train_loss = 0;         ///< mean over the images since the last report
  Metric train_score;            ///< the task's figure, over the same images
  double images_per_second = 0;  ///< since the last report, of all ranks together
  double data_wait_share = 0;    ///< of the time since the last report, 0 to 1
  double gradient_norm = -1;     ///< before clipping, of the last update; -1: not measured
  double loss_scale = 0;         ///< fp16 only, else 0
  int64_t skipped_updates = 0;   ///< non-finite fp16 gradients, whole run
  double elapsed_seconds = 0;    ///< of this process's training
  data::LoaderStats loader;      ///< totals
  StepTimings times;             ///< since the last report
  std::vector<RankTimes> ranks;  ///< likewise, of each rank; empty where this one is alone
  Findings found;                ///< between updates, just before this event
};

/// A sample of an evaluation, and what the network made of it.
struct ShownSample {
  int64_t sample = 0;            ///< index in the validation source
  double error = 0;              ///< 1 - the probability of the truth, or mean distance from the targets
  std::vector<float> predicted;  ///< as Task::predictions() has it
};

/// A sample of the validation split whose content is that of a training sample; indices in the two sources.
struct SharedSample {
  int64_t validation = 0;
  int64_t training = 0;
};

struct EpochEvent {
  int64_t epoch = 0;    ///< 0-based, the one that ended
  int64_t updates = 0;  ///< done in the run
  int64_t images = 0;   ///< trained on in this epoch
  int64_t update_in_epoch = 0;
  bool is_cut_short = false;  ///< a limit stopped the run within the epoch, which stays under way
  double train_loss = 0;
  double learning_rate = 0;  ///< of the last update
  bool has_eval = false;
  double eval_loss = 0;
  std::vector<Metric> metrics;  ///< as StartEvent has them; empty when not evaluated
  bool is_best = false;
  std::vector<ShownSample> worst;            ///< of the best epoch so far: some, the worst first
  std::vector<ShownSample> ordinary;         ///< of the same epoch: some, evenly spaced in the split
  std::vector<SharedSample> in_both_splits;  ///< of the first validation of a run that began from scratch
  double best_value = 0;
  // By this process's clock; not part of what a resumed run must reproduce.
  double train_seconds = 0;
  double eval_seconds = 0;
  double images_per_second = 0;
  double data_wait_share = 0;
  int64_t bad_images = 0;        ///< distinct, whole run
  std::vector<RankTimes> ranks;  ///< of the epoch, of each rank; empty where this one is alone
  StepTimings times;             ///< of the epoch, as far as this process went through it
  Findings found;                ///< between updates, after the epoch's last one
  int64_t working_bytes = 0;     ///< of working memory that tensors still hold; see engine/memory/activation_arena
};

/// After an update whose digests are due: what another computation of it is compared with.
struct DigestEvent {
  int64_t epoch = 0;    ///< 0-based
  int64_t updates = 0;  ///< done in the run
  std::string weights;  ///< XXH3-128 of weights and buffers after it
  std::string images;   ///< of its images, as the network got them
};

struct CheckpointEvent {
  std::string path;
  int64_t updates = 0;
  int64_t bytes = 0;
  double seconds = 0;        ///< of writing and verifying
  double stall_seconds = 0;  ///< that training waited: for the copy, and for the save before where that was under way
};

enum class StopReason { epochs_done, max_updates, max_time, no_improvement, signal };
std::string reason_text(StopReason reason, const std::string& signal_name);

struct FinishEvent {
  StopReason reason = StopReason::epochs_done;
  std::string signal_name;  ///< "TERM" when reason is signal
  int64_t updates = 0;
  int64_t epochs_done = 0;
  double best_value = 0;
  int64_t best_epoch = -1;  ///< 0-based; -1: never evaluated
  std::string checkpoint;
  double elapsed_seconds = 0;
};

/// What the loop is going to do, for listeners that show progress.
struct StartEvent {
  int64_t epochs = 0;
  int64_t updates_per_epoch = 0;
  int64_t total_updates = 0;  ///< with --max-updates taken into account
  int64_t images_per_epoch = 0;
  int64_t start_epoch = 0;  ///< 0-based; > 0 or start_updates > 0 when resumed
  int64_t start_updates = 0;
  std::vector<Metric> metrics;  ///< what evaluations will report besides the loss, without values
  ComputeCost compute = {};
  std::string backend = {};      ///< what was proven of the libraries that compute
  std::string items = "images";  ///< what people call the samples
};

/// Listens to a run, and only listens: it does not touch the learner, measures nothing that takes time, and looks for
/// no stop request. Called on the training thread; returns quickly. Throws nothing but core::Error{io}, for a record of
/// the run that was lost.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_start(const StartEvent&) {}
  virtual void on_update(const UpdateEvent&) {}
  virtual void on_digest(const DigestEvent&) {}
  virtual void on_report(const ReportEvent&) {}
  virtual void on_evaluation(int64_t /*images_done*/, int64_t /*images_total*/) {}
  virtual void on_epoch(const EpochEvent&) {}
  virtual void on_checkpoint(const CheckpointEvent&) {}
  virtual void on_finish(const FinishEvent&) {}
};

/// Passes every event on to several observers, in order. A core::StopRequested from one of them becomes Error{bug}: the
/// event would be lost to those behind it, and a row of a results file with it.
class Observers : public Observer {
 public:
  void add(Observer& observer) { observers_.push_back(&observer); }
  void on_start(const StartEvent& event) override;
  void on_update(const UpdateEvent& event) override;
  void on_digest(const DigestEvent& event) override;
  void on_report(const ReportEvent& event) override;
  void on_evaluation(int64_t images_done, int64_t images_total) override;
  void on_epoch(const EpochEvent& event) override;
  void on_checkpoint(const CheckpointEvent& event) override;
  void on_finish(const FinishEvent& event) override;

 private:
  template <typename Notify>
  void notify_all(const Notify& notify) const;

  std::vector<Observer*> observers_;
};

}  // namespace stoker::engine
