// SPDX-License-Identifier: Apache-2.0
// All that watches a training run: listeners (files, pictures, progress), and what examines it between updates.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/facts.h"
#include "core/system/machine.h"
#include "data/open_datasets.h"
#include "engine/step/learner.h"
#include "engine/task/task.h"
#include "observe/listeners/console.h"
#include "observe/listeners/profile.h"
#include "observe/listeners/progress.h"
#include "observe/listeners/run_files.h"
#include "observe/listeners/tensorboard.h"
#include "observe/resources/resource_sampler.h"
#include "train/observers/diagnosing.h"
#include "train/observers/operator_profile.h"
#include "train/observers/split_overlap.h"
#include "train/observers/worst_file.h"

namespace stoker::train {

/// What a run is, for those who watch it.
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

/// Owns the listeners of a run, and what examines it.
class RunObservers {
 public:
  RunObservers(const ObservedRun& run, const std::string& run_dir, observe::Console& console);
  engine::Observer& observer();
  engine::BetweenUpdates& between_updates() { return diagnosing_; }
  /// After the run: the samples that its best network was most wrong about.
  void write_worst_samples() const { worst_file_.write(); }
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

}  // namespace stoker::train
