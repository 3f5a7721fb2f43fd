// SPDX-License-Identifier: Apache-2.0
// The files of a run besides its checkpoints. Rank 0 writes them; on other ranks nothing happens.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "commands/command.h"
#include "engine/step/learner.h"
#include "plan/memory_plan.h"
#include "train/launch/joined_ranks.h"
#include "train/observers/observing.h"
#include "train/setup/run_directory.h"

namespace stoker::train {

class RunJournal {
 public:
  RunJournal(const JoinedRanks& ranks, const std::string& run_dir);

  /// Makes and locks the run directory, and opens the log of this rank. `is_fresh`: sets an older run aside. All ranks
  /// call it. Throws as RunDirectory.
  void open(bool is_fresh);
  /// config.yaml, the network's file and the memory plan; from now on `run` is observed.
  void begin(const ObservedRun& run, const config::Configuration& given, const config::Resolution& resolution,
             const plan::MemoryPlan& memory, const plan::MemoryBudget& budget, observe::Console& console);
  /// The observer of updates; one that does nothing on other ranks.
  engine::Observer& observer() { return observing_ ? observing_->observer() : nobody_; }
  engine::BetweenUpdates& between_updates() { return observing_ ? observing_->between_updates() : nothing_; }
  /// The recorder of the operators of `device`; one that records nothing where nothing is profiled.
  engine::OperatorRecorder& operators(torch::Device device);
  /// The memory that was really used, and the worst samples; the network then has the weights of the best checkpoint.
  void end(const plan::MemoryPlan& memory, const plan::MemoryBudget& budget, engine::Learner& learner);

 private:
  const JoinedRanks& ranks_;
  const std::string run_dir_;
  std::unique_ptr<RunDirectory> lock_;
  std::optional<RunObservers> observing_;
  // State of other ranks.
  engine::Observer nobody_;
  engine::BetweenUpdates nothing_;
  std::optional<engine::OperatorRecorder> no_profile_;
};

}  // namespace stoker::train
