// SPDX-License-Identifier: Apache-2.0
// Looks at the facts of a run from every side, each with its "what if", and keeps the side that gains most.
// The verdicts: diagnosis.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/run/events.h"
#include "observe/diagnosis/diagnosis.h"
#include "observe/resources/resources.h"

namespace stoker::observe {

// How long an update takes, from what limits it: the training thread, the workers, the CPUs that both share.
// Answers "what if" by arithmetic.

/// Seconds per update. A copy with another value is a "what if".
struct StepModel {
  double update = 0;          ///< as measured
  double training = 0;        ///< time of the training thread, had it not waited for data nor for a CPU
  double network_cpu = 0;     ///< CPU time of all threads but the workers
  double worker_cpu = 0;      ///< CPU time of all workers together
  double worker_blocked = 0;  ///< they waited for storage
  double workers = 0;         ///< threads; 0: the training thread decodes
  double cpus = 1;            ///< that this process may use
  double taken_cpus = 0;      ///< number of those that other processes keep busy
  double least_cpus = 0.25;   ///< that it gets whatever others take: as many as it was seen to get
  double slack = 1;           ///< measured over what the limits explain: bursts, hand-overs. Never below 1

  /// The time that the limits explain, without slack: the slowest of the training thread, the workers and the CPUs.
  double limit() const;
  /// The gain of `changed`, in percent: how much more updates per second than measured. Never below 0.
  double gain_percent(const StepModel& changed) const;
};

StepModel step_model(const engine::StepTimings& times, const ResourceReading& resources, int64_t cpus);

class BottleneckAnalysis {
 public:
  /// `facts` outlives it.
  explicit BottleneckAnalysis(const DiagnosisFacts& facts);
  Diagnosis run();

 private:
  // Limits of the network's computing (bottleneck_analysis.cpp).
  void check_threads();
  void check_contention();
  void check_report_and_saves();
  void check_copies();
  void check_batch();
  void check_launching();
  void check_device();
  void check_precision(const std::string& busy);
  void check_layout(const std::string& busy);
  void check_blas(const std::string& busy);
  void conclude_nothing_to_gain();
  void conclude_cpu_limit();
  std::string low_utilization_text() const;
  // Limits by other ranks (bottleneck_input.cpp).
  void check_ranks();
  void check_exchange(const engine::RankSummary& ranks);
  void check_slowest(const engine::RankSummary& ranks);
  // Limits of the input (bottleneck_input.cpp).
  void check_input();
  bool check_prefetch();
  bool check_storage();
  double check_workers();
  void check_stages();

  /// A side: it becomes the verdict when it gains more than those before it, and more than the scatter of the measured
  /// updates could be. `cause`: seconds of an update that what it names takes; without all of them none is faster.
  void propose(Verdict verdict, const StepModel& changed, double cause, const std::string& option,
               const std::string& value, const std::string& advice, std::vector<std::string> evidence);
  StepModel with_pass_of(double seconds, int64_t threads) const;
  StepModel with_pixels_in_memory() const;
  bool fits(double bytes) const;
  double per_update(double seconds_of_window) const;
  double stage_share(double seconds) const;
  /// The gain, in percent, of updates that are shorter by `seconds`.
  double percent_without(double seconds) const;
  double saved_by(const StepModel& changed) const { return now_.training - changed.training; }
  std::string waits_text() const;
  static std::string percent_text(double share);

  const DiagnosisFacts& facts_;
  const engine::StepTimings& times_;
  const StepModel now_;
  const double wait_share_;
  const double wait_;       ///< seconds per update, for data
  const double computing_;  ///< seconds per update
  const double scatter_;    ///< seconds by which the mean update may be off
  bool is_hidden_ = false;  ///< a side gains less than that
  Diagnosis best_;
};

}  // namespace stoker::observe
