// SPDX-License-Identifier: Apache-2.0
// Facts about a run that a diagnosis reasons from, and how its ceilings are measured.
#pragma once

#include <optional>

#include "config/facts.h"
#include "core/system/machine.h"
#include "data/source.h"
#include "engine/loop/between_updates.h"
#include "engine/probe/probe_input.h"
#include "engine/task/task.h"
#include "observe/diagnosis/diagnoser.h"
#include "observe/resources/resource_sampler.h"

namespace stoker::train {

/// `train` as the loader reads it.
observe::DiagnosisFacts known_facts(const config::ResolvedOptions& options, const core::MachineFacts& machine,
                                    const config::DataFacts& data_facts, const data::Source& train);
/// Examines a run between its updates: what it uses of the machine, what limits it. Runs the learner on noise where a
/// diagnosis has reason to measure how fast it could be.
class Diagnosing : public engine::BetweenUpdates {
 public:
  struct Run {
    const config::ResolvedOptions& options;
    const core::MachineFacts& machine;
    const config::DataFacts& data_facts;
    const data::Source& train;  ///< as the loader reads it
    const engine::Task& task;
    torch::Device device;
    engine::ComputeCost compute = {};
    std::optional<double> bfloat16_speed = {}, other_layout_speed = {};  ///< see RunSetup
  };
  /// All that is passed outlives this.
  Diagnosing(const Run& run, observe::ResourceSampler& resources);
  engine::Findings run(engine::Learner& learner, const engine::Interlude& interlude) override;

 private:
  static observe::DiagnosisFacts facts_of_run(const Run& run);
  static double measured(const torch::Device& device, const std::function<double()>& probe);
  double overhead_seconds(engine::Learner& learner) const;
  double pass_seconds(engine::Learner& learner, int64_t threads, int64_t images) const;

  const engine::Task& task_;
  const engine::ProbeSettings settings_;
  const int64_t batch_size_;
  observe::ThroughputProbes probes_;  ///< those that need no learner
  observe::ResourceSampler& resources_;
  observe::Diagnoser diagnoser_;
};

}  // namespace stoker::train
