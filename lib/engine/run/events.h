// SPDX-License-Identifier: Apache-2.0
// The events of a run, as plain values, and the interface of their observers. The loop depends on this file, on no
// console or file; the observe module implements it. Torch-free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/loader/loader_stats.h"
#include "engine/run/step_times.h"

namespace stoker::engine {

// Measurements of a run about itself, as plain values that events carry to observers: what it uses of
// the machine, and what limits it. Torch-free.

/// One look at a GPU; what its driver or board does not report is absent.
struct GpuReading {
  std::optional<double> busy_percent;  ///< share of the driver's last sample period with a kernel running
  std::optional<double> memory_used_bytes, memory_total_bytes;  ///< GPU memory in use by all processes; its size
  std::optional<double> power_watts;
  std::optional<double> celsius;
  std::optional<double> clock_mhz, highest_clock_mhz;  ///< clock of the multiprocessors: now, and as the board allows
  std::optional<double> memory_clock_mhz;
  std::optional<double> memory_percent;                    ///< as busy_percent, with memory being read or written
  std::optional<double> encoder_percent, decoder_percent;  ///< load of the video encoder and of the video decoder
  std::optional<double> fan_percent;                       ///< fan speed in percent of the highest
  std::optional<double> performance_state;                 ///< 0, the fastest, to 15
  std::optional<uint64_t> clock_reasons;                   ///< NVML's bits: why the clocks are below their highest
};

/// The resources that a run uses. Unknown values are absent, never 0.
struct ResourceReading {
  GpuReading gpu;
  std::optional<double> cpu_percent;          ///< this process, of all CPUs that it may use
  std::optional<double> machine_cpu_percent;  ///< all processes, of all CPUs of the machine
  std::optional<double> other_cpus;           ///< number of CPUs kept busy by other processes, among those it may use
  std::optional<double> threads_without_cpu;  ///< number of this process's threads ready to run, but waiting for a CPU
  std::optional<double> involuntary_switches_per_second;  ///< a thread had to give its CPU away
  std::optional<double> ram_used_bytes;                   ///< memory in use by cgroup or machine, see core::MemoryUse
  std::optional<double> ram_limit_bytes;
  std::optional<double> resident_bytes;                                   ///< this process
  std::optional<double> read_bytes_per_second, written_bytes_per_second;  ///< this process, from and to storage
};

enum class Verdict {
  nothing,                 ///< nothing to gain
  storage,                 ///< input-bound: reading
  cold_cache,              ///< input-bound: reading for the first time
  decode,                  ///< input-bound: decoding
  augmentation,            ///< input-bound: resizing and augmenting
  workers,                 ///< input-bound: too few workers
  prefetch,                ///< input-bound in bursts: too few batches ahead
  contention,              ///< other processes use the CPUs
  competing_threads,       ///< another process holds a CPU that threads of the network wait for each other on
  oversubscribed_threads,  ///< more threads than CPUs
  copy,                    ///< copies to the device
  sync,                    ///< waiting for the device to report
  saving,                  ///< writing checkpoints
  launch,                  ///< fixed costs per update: the batch is too small
  exchange,                ///< ranks wait for the sums over all of them
  unequal_ranks,           ///< all ranks wait for the slowest
  throttled,               ///< the device's clocks are down
  device                   ///< the device computes all the time
};

/// The bottleneck of a run, and the one option to change.
struct Diagnosis {
  Verdict verdict = Verdict::nothing;
  std::vector<std::string> evidence;  ///< short facts with figures
  std::string option;                 ///< "--num-workers"; "": none helps
  std::string value;                  ///< "4"
  std::string advice;                 ///< "--num-workers 4", or what to do where no option helps
  double gain_percent = 0;            ///< more images per second; >= 0
};

/// Updates without which times do not show what limits them: one that is late would count for more than a tenth.
inline constexpr int64_t kJudgedUpdates = 10;

/// Where a run stands between two updates, when it is examined; see engine/loop/run_telemetry.h.
struct Interlude {
  enum class After { report_interval, epoch };
  After after = After::report_interval;
  int64_t epoch = 0;             ///< 0-based: under way, or just ended
  bool is_first_epoch = false;   ///< true in the first epoch of this process
  int64_t epochs_left = 0;       ///< after this one
  StepTimings times;             ///< times of a window that is long enough to judge by; else without updates
  std::vector<RankTimes> ranks;  ///< the ranks' times in about the same window; empty where this rank is alone
  double seconds_allowed = 0;    ///< for using the learner; 0 or less: not at all, as after a stop request
};

struct Findings {
  std::optional<ResourceReading> resources;  ///< means and maxima since the last event of the same kind
  std::optional<Diagnosis> diagnosis;        ///< diagnosis of the last window long enough; absent before the first
};

// FLOPs of training and peak FLOP/s of the devices: plain values, from which the share of the peak that a
// run reaches follows.

struct ComputeCost {
  /// A rate that training reaches is a peak, too: one that was measured lower was measured while others kept the
  /// devices busy.
  void note_rate(double images_per_second) {
    if (peak_flop_per_second > 0)
      peak_flop_per_second = std::max(peak_flop_per_second, images_per_second * training_flop);
  }

  double forward_flop = 0;          ///< forward pass of one image or clip: additions and multiplications, each counted
  double training_flop = 0;         ///< forward and backward pass of one image or clip; 0: not known
  double peak_flop_per_second = 0;  ///< measured peak of all devices of the run, in its precision; 0: not known
  double grouped_share = 0;         ///< share of forward_flop in convolutions of several groups (depthwise); 0 to 1
  double product_share = 0;  ///< share of forward_flop in matrix multiplications (linear layers, attention); 0 to 1
};

/// Model FLOPs utilization: the share of the peak that training at this rate needs, 0 to 1. Absent where either side is
/// not known. After PaLM (Chowdhery et al. 2022, appendix B); recomputed activations do not count.
inline std::optional<double> utilization(const ComputeCost& cost, double images_per_second) {
  if (cost.training_flop <= 0 || cost.peak_flop_per_second <= 0) return std::nullopt;
  return std::min(1.0, images_per_second * cost.training_flop / cost.peak_flop_per_second);
}

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
  double data_wait_share = 0;    ///< share of the time since the last report spent waiting for data, 0 to 1
  double gradient_norm = -1;     ///< before clipping, of the last update; -1: not measured
  double loss_scale = 0;         ///< fp16 only, else 0
  int64_t skipped_updates = 0;   ///< non-finite fp16 gradients, whole run
  double elapsed_seconds = 0;    ///< training time of this process
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

/// An epoch ended, or an evaluation inside one.
struct EpochEvent {
  int64_t epoch = 0;    ///< 0-based, the one that ended
  int64_t updates = 0;  ///< done in the run
  int64_t images = 0;   ///< trained on in this epoch
  int64_t update_in_epoch = 0;
  bool is_cut_short = false;  ///< a limit stopped the run within the epoch, which stays under way
  double train_loss = 0;
  double learning_rate = 0;  ///< learning rate of the last update
  bool has_eval = false;
  double eval_loss = 0;
  std::vector<Metric> metrics;  ///< as StartEvent has them; empty when not evaluated
  bool is_best = false;
  std::vector<ShownSample> worst;            ///< some samples of the best epoch so far, the worst first
  std::vector<ShownSample> ordinary;         ///< some samples of the same epoch, evenly spaced in the split
  std::vector<SharedSample> in_both_splits;  ///< set by the first validation of a run that began from scratch
  double best_value = 0;
  // By this process's clock; not part of what a resumed run must reproduce.
  double train_seconds = 0;
  double eval_seconds = 0;
  double images_per_second = 0;
  std::optional<double> utilization;  ///< utilization of the devices, as utilization() has it
  double data_wait_share = 0;
  int64_t bad_images = 0;        ///< distinct, whole run
  std::vector<RankTimes> ranks;  ///< times of each rank in the epoch; empty where this one is alone
  StepTimings times;             ///< times of the epoch, as far as this process went through it
  Findings found;                ///< between updates, after the epoch's last one
  int64_t working_bytes = 0;     ///< size of working memory that tensors still hold; see engine/memory/activation_arena
  bool is_inside = false;  ///< the epoch continues: images and training loss are those so far, no times are measured
};

/// After an update whose digests are due: what another computation of it is compared with.
struct DigestEvent {
  int64_t epoch = 0;    ///< 0-based
  int64_t updates = 0;  ///< done in the run
  std::string weights;  ///< XXH3-128 of weights and buffers after it
  std::string images;   ///< digest of the update's images, as the network got them
};

struct CheckpointEvent {
  std::string path;
  int64_t updates = 0;
  int64_t bytes = 0;
  double seconds = 0;        ///< time of writing and verifying
  double stall_seconds = 0;  ///< that training waited: for the copy, and for the save before where that was under way
};

enum class StopReason { epochs_done, max_updates, max_time, no_improvement, signal };
std::string reason_text(StopReason reason, const std::string& signal_name);
/// Whether the same command trains on.
constexpr bool continues(StopReason reason) { return reason == StopReason::signal || reason == StopReason::max_time; }

struct FinishEvent {
  StopReason reason = StopReason::epochs_done;
  std::string signal_name;  ///< "TERM" when reason is signal
  int64_t updates = 0;
  int64_t epochs_done = 0;
  double best_value = 0;
  int64_t best_epoch = -1;  ///< 0-based; -1: never evaluated
  std::string checkpoint;
  double elapsed_seconds = 0;
  int64_t best_updates = -1;
  std::optional<double> last_value;     ///< evaluation metric of the last checkpoint; nothing: it was not evaluated
  int64_t averaged = 0;                 ///< number of checkpoints in the average; 0: no average
  std::optional<double> average_value;  ///< evaluation metric of the average; nothing: it was not evaluated
};

/// The plan of the loop, for observers that show progress.
struct StartEvent {
  int64_t epochs = 0;
  int64_t updates_per_epoch = 0;
  int64_t total_updates = 0;  ///< with --max-updates taken into account
  int64_t images_per_epoch = 0;
  int64_t start_epoch = 0;  ///< 0-based; > 0 or start_updates > 0 when resumed
  int64_t start_updates = 0;
  std::vector<Metric> metrics;  ///< what evaluations will report besides the loss, without values
  ComputeCost compute = {};
  std::string backend = {};        ///< what was proven of the libraries that compute
  std::string items = "images";    ///< what people call the samples
  int64_t evaluated_updates = -1;  ///< in a resumed run: updates before the last evaluation that still counts
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
