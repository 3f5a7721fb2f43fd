// SPDX-License-Identifier: Apache-2.0
// All that watches a training run: observers (files, pictures, progress), what examines it between updates, and the end
// of its job.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "config/facts.h"
#include "core/system/machine.h"
#include "data/open_datasets.h"
#include "data/source.h"
#include "engine/loop/run_telemetry.h"
#include "engine/probe/probe_input.h"
#include "engine/run/events.h"
#include "engine/step/learner.h"
#include "engine/task/task.h"
#include "observe/diagnosis/diagnosis.h"
#include "observe/observers/console.h"
#include "observe/observers/profile.h"
#include "observe/observers/progress.h"
#include "observe/observers/run_files.h"
#include "observe/observers/tensorboard.h"
#include "observe/resources/resource_sampler.h"
#include "train/observers/operator_profile.h"
#include "train/observers/worst_file.h"

namespace stoker::train {

// Facts about a run that a diagnosis reasons from, and how its ceilings are measured.

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

// Warns at the end of a run's first epoch of images that are in both splits.

class SplitOverlapWarning : public engine::Observer {
 public:
  /// The sources name the samples.
  SplitOverlapWarning(std::shared_ptr<const data::Source> training, std::shared_ptr<const data::Source> validation);

  void on_epoch(const engine::EpochEvent& event) override;

 private:
  const std::shared_ptr<const data::Source> training_, validation_;
};

/// The facts about a run, for its observers.
struct ObservedRun {
  const config::ResolvedOptions& options;
  const core::MachineFacts& machine;
  const config::DataFacts& data_facts;
  const data::Datasets& datasets;
  const engine::Task& task;
  torch::Device device;
  engine::ComputeCost compute = {};
  std::optional<double> bfloat16_speed = {}, other_layout_speed = {};  ///< see RunSetup
  bool records_graphs = false;                                         ///< updates may be recorded as graphs
};

/// Owns the observers of a run, and what examines it.
class RunObservers {
 public:
  RunObservers(const ObservedRun& run, const std::string& run_dir, observe::Console& console);
  engine::Observer& observer();
  engine::BetweenUpdates& between_updates() { return diagnosing_; }
  /// After the run: the worst mistakes of its best network.
  void write_worst_samples(model::ImageModel& model, torch::Device device) const { worst_file_.write(model, device); }
  /// nullptr: no update is profiled.
  engine::OperatorRecorder* operators() { return operators_ ? &operators_->recorder() : nullptr; }

 private:
  std::optional<observe::Profile> profile_;
  std::optional<OperatorProfile> operators_;
  observe::ResourceSampler resources_;
  Diagnosing diagnosing_;
  observe::RunFiles run_files_;
  std::optional<observe::TensorBoardFile> tensorboard_;
  WorstFile worst_file_;
  SplitOverlapWarning split_overlap_;
  observe::Progress progress_;
  engine::Observers observers_;
  std::unique_ptr<engine::Observer> hook_;  ///< in front of observers_; nullptr: none
};

/// The end of a batch job, where it is known: requests a stop before, as a signal would, so that it also ends a scan or
/// an evaluation. What has to be left is measured: the slowest save, twice, since the one before may be under way, and
/// the slowest update. One thread.
class JobEnd : public engine::Observer {
 public:
  /// `end`: seconds since 1970.
  explicit JobEnd(double end);
  JobEnd(const JobEnd&) = delete;
  JobEnd& operator=(const JobEnd&) = delete;

  std::string text() const;  ///< for the banner
  /// Seconds before the end at which the run stops, `left` of them being left.
  double reserve(double left) const;

  void on_update(const engine::UpdateEvent& event) override;
  void on_checkpoint(const engine::CheckpointEvent& event) override;

 private:
  void request_stop() const;

  const double end_;
  double slowest_save_ = -1, slowest_update_ = 0;  ///< seconds; -1: none yet
  std::chrono::steady_clock::time_point last_update_{};
};

/// nullptr: the environment names no end, or one that has passed.
std::unique_ptr<JobEnd> job_end_of_environment();

}  // namespace stoker::train
