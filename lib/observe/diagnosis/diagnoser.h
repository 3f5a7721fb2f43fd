// SPDX-License-Identifier: Apache-2.0
// Makes a diagnosis during a run and after each epoch, and logs it when it is worth it. Has the measurements, and
// probes for ceilings; does not measure itself.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "engine/run/events.h"
#include "observe/diagnosis/diagnosis.h"

namespace stoker::observe {

/// Percent of gain from which on a diagnosis is logged at once, not only with its epoch.
inline constexpr double kWorthInterrupting = 10;

/// Ceilings, measured on the training thread in between updates: each some hundredths of a second, once or
/// seldom. May throw core::StopRequested; another exception means that the figure cannot be had.
struct ThroughputProbes {
  /// Of the network's forward and backward on `images` images, with `threads` threads of the CPU; 0: not measured.
  std::function<double(int64_t threads, int64_t images)> pass_seconds;
  std::function<double()> bfloat16_speed;    ///< over float32; empty: bfloat16 is no choice here
  std::function<double()> overhead_seconds;  ///< of an update, for whatever batch
};

/// One thread.
class Diagnoser {
 public:
  /// `known`: all that does not change while the run goes on.
  explicit Diagnoser(DiagnosisFacts known) : known_(std::move(known)) {}

  /// Judges a window that is long enough; else the verdict before it stands. Measures the ceilings that it has reason
  /// to ask for, as long as `interlude` allows; a stop request ends that, and the verdict does without them. Returns
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
