// SPDX-License-Identifier: Apache-2.0
// Asks for a diagnosis during a run and after each epoch, and says it when it is worth it. Knows what was
// measured, and whom to ask for ceilings; not how they are measured.
#pragma once

#include <chrono>
#include <functional>

#include "observe/diagnosis/diagnosis.h"
#include "observe/resources/resource_sampler.h"

namespace stoker::observe {

/// Ceilings, measured on the training thread in between updates: each some hundredths of a second, once or
/// seldom.
struct ThroughputProbes {
  std::function<double(int64_t threads)> threads_speed;  ///< over one thread
  std::function<double()> bfloat16_speed;                ///< over float32; empty: bfloat16 is no choice here
  std::function<double()> overhead_seconds;              ///< of an update, for whatever batch
};

/// Comes behind the resources and before all that read its diagnoses in the list of observers.
class Diagnoser : public engine::Observer {
 public:
  /// `known`: all that does not change while the run goes on.
  Diagnoser(DiagnosisFacts known, ThroughputProbes probes, const ResourceSampler* resources);

  void on_start(const engine::StartEvent& event) override;
  void on_report(const engine::ReportEvent& event) override;
  void on_epoch(const engine::EpochEvent& event) override;

  /// Of the last window that was long enough; without a verdict's evidence before the first.
  const Diagnosis& latest() const { return latest_; }
  bool has_any() const { return has_any_; }

 private:
  Diagnosis examine(const engine::StepTimings& times, const ResourceReading& resources, int64_t epoch, int64_t updates);
  double expected_seconds(int64_t updates) const;
  void measure_ceilings(DiagnosisFacts& facts);
  std::optional<double> within_budget(const std::function<double()>& probe);

  const DiagnosisFacts known_;
  const ThroughputProbes probes_;
  const ResourceSampler* const resources_;
  engine::StartEvent start_;
  Diagnosis latest_;
  bool has_any_ = false, warmed_up_ = false;
  Verdict said_ = Verdict::nothing;
  // Ceilings and what measuring them has cost.
  std::optional<double> bfloat16_speed_, fixed_seconds_, threads_speed_, cpus_speed_;
  std::chrono::steady_clock::time_point begin_, threads_measured_;
  double probe_seconds_ = 0, probe_budget_seconds_ = 0;
};

}  // namespace stoker::observe
