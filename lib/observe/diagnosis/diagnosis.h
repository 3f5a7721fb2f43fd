// SPDX-License-Identifier: Apache-2.0
// From what was measured to one verdict: what limits the run, the one option to change, the value to try and how
// much that should gain. A pure function.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "engine/run/events.h"
#include "observe/resources/resources.h"

namespace stoker::observe {

using engine::Diagnosis;
using engine::Verdict;

/// "input-bound: too few workers": as files and people have it.
const char* verdict_text(Verdict verdict);

struct AugmentationInUse {
  std::string flag;  ///< that turns it off: "--gaussian-blur", or "--no-x"
  std::string off;   ///< with this value: "0"; "" where the flag takes none
};

/// The measurements of a run. Verdicts do without absent ones.
struct DiagnosisFacts {
  engine::StepTimings times;
  std::vector<engine::RankTimes> ranks;  ///< the ranks' times in about the same window; empty where this rank is alone
  ResourceReading resources;
  int64_t cpus = 1;    ///< that this process may use
  bool on_cpu = true;  ///< the network computes on the CPU

  engine::ComputeCost compute = {};
  int64_t batch_size = 1, accumulation_steps = 1, replicas = 1;
  int64_t threads = 1, prefetch_factor = 4;
  double report_seconds = 0, save_seconds = 0;  ///< intervals of --report-every, --save-every; 0: by updates or epochs
  bool pin_memory = true;                       ///< or copies cannot be made faster by it
  bool amp = false, channels_last = true;
  bool reference_blas = false;                     ///< matrices are multiplied on the CPU by the slow library
  bool native_bfloat16 = false;                    ///< the device that computes has it
  bool holds_pixels = false, holds_files = false;  ///< the cache, for at least most images
  std::vector<AugmentationInUse> augmentations;    ///< the costliest first

  int64_t images_per_epoch = 0;
  double stored_bytes = 0, pixel_bytes = 0;  ///< size of all training images, as files and decoded; 0: unknown
  double free_ram_bytes = 0;                 ///< 0: unknown
  bool first_epoch = false;                  ///< true in the first epoch of this process
  int64_t epochs_left = 0;                   ///< after this one

  std::optional<double> network_bfloat16_speed;  ///< training speed of the network over float32; absent: not measured

  std::optional<double> other_layout_speed;  ///< training speed in the other layout over this one; absent: not measured

  // Ceilings, measured when they are needed.
  std::optional<double> one_thread_seconds;  ///< forward and backward of a batch on one thread, now
  std::optional<double> cpus_seconds;        ///< the same on as many threads as CPUs
  std::optional<double> bfloat16_speed;      ///< speed of convolutions over float32, where the network was not measured
  std::optional<double> overhead_seconds;    ///< fixed part of an update, for whatever batch: launching operations

  /// Forward and backward of one batch, by the clock of StepTimings::judged().
  double pass_seconds() const;
};

Diagnosis diagnose(const DiagnosisFacts& facts);

/// "input-bound: too few workers (waits for data 47%, ...): --num-workers 2 should give 54% more images/s".
std::string diagnosis_text(const Diagnosis& diagnosis);
core::Json diagnosis_json(const Diagnosis& diagnosis);

// Makes a diagnosis during a run and after each epoch, and logs it when it is worth it. Has the measurements, and
// probes for ceilings; does not measure itself.

/// Percent of gain from which on a diagnosis is logged at once, not only with its epoch.
inline constexpr double kWorthInterrupting = 10;

/// Ceilings, measured on the training thread in between updates: each some hundredths of a second, once or
/// seldom. May throw core::StopRequested; another exception means that the figure cannot be had.
struct ThroughputProbes {
  /// Seconds of the network's forward and backward on `images` images, with `threads` threads of the CPU; 0: not
  /// measured.
  std::function<double(int64_t threads, int64_t images)> pass_seconds;
  std::function<double()> bfloat16_speed;    ///< over float32; empty: bfloat16 is not a choice here
  std::function<double()> overhead_seconds;  ///< fixed part of an update, for whatever batch
};

/// One thread.
class Diagnoser {
 public:
  /// `known`: all that does not change while the run continues.
  explicit Diagnoser(DiagnosisFacts known) : known_(std::move(known)) {}

  /// Judges a window that is long enough; else the verdict before it stands. Measures the ceilings that it has reason
  /// to request, as long as `interlude` allows; a stop request ends that, and the verdict does without them. Returns
  /// the newest verdict, if there is any.
  const std::optional<Diagnosis>& judge(const engine::Interlude& interlude, const ResourceReading& resources,
                                        const ThroughputProbes& probes);

 private:
  Diagnosis examine(const engine::Interlude& interlude, const ResourceReading& resources,
                    const ThroughputProbes& probes);
  void measure_ceilings(DiagnosisFacts& facts, const ThroughputProbes& probes);
  std::optional<double> batch_seconds(const DiagnosisFacts& facts, const ThroughputProbes& probes, int64_t threads);
  std::optional<double> within_budget(const std::function<double()>& probe);

  const DiagnosisFacts known_;
  std::optional<Diagnosis> latest_;
  bool warmed_up_ = false, a_probe_failed_ = false;
  Verdict logged_ = Verdict::nothing;
  // Ceilings, and how long more may be measured.
  std::optional<double> bfloat16_speed_, overhead_seconds_, one_thread_seconds_, cpus_seconds_;
  std::chrono::steady_clock::time_point threads_measured_;
  double seconds_allowed_ = 0;
};

}  // namespace stoker::observe
