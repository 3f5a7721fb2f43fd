// SPDX-License-Identifier: Apache-2.0
// A part of a past run, recomputed: the parts that trained, made as they were, and one update after the other.
// Writes nothing, and neither validates nor saves: both leave weights and random numbers as they are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/inspect/recorded_run.h"
#include "data/feed/device_feed.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/run/plan.h"
#include "engine/step/update_step.h"
#include "engine/step/updater.h"
#include "optim/schedule.h"
#include "train/setup/run_setup.h"
#include "train/setup/settings.h"

namespace stoker::train {

/// "": what read the images and computed when update number `update` was done is what does so now, as far as the run
/// records it. Else which of it differs: the decoders of another release give other pixels of the same files.
std::string changed_libraries(const RecordedRun& run, int64_t update, const config::ResolvedOptions& options);

class Recomputation {
 public:
  /// The options on the command line win over those of the run: such as --data-dir.
  /// Goes from `checkpoint` ("": from the beginning, with the weights that the seed gives) towards update number `to`,
  /// whose options hold. One process does it, whatever number of them the run had. Throws as training does when it
  /// starts; Error{unavailable} where the device of the run is not there.
  Recomputation(const config::CommandLine& line, const RecordedRun& run, const std::string& checkpoint, int64_t to);

  /// Where it stands, as a checkpoint records it; best value and clocks are not computed.
  engine::RunProgress at() const;
  /// The last update that the options allow: a number in a file cannot make it compute for ever.
  int64_t last_update() const { return last_update_; }
  /// The next update. Throws as training does, core::StopRequested; Error{data} behind the last.
  void advance(engine::StepWatcher* watcher = nullptr);
  /// advance() until `updates` updates are done.
  void advance_to(int64_t updates);

  /// As after the last update, where --precise-bn requests it.
  void measure_statistics();

  /// How samples become what the network sees, as the run's checkpoints store it.
  core::Json preprocess() const;
  /// Fields of state.json, if a checkpoint were written now; see Checkpoints::learner_facts().
  core::Json learner_facts() const { return checkpoints_->learner_facts(prepared_.learner); }
  /// The differences from the run that wrote `checkpoint`: options and data, one per line.
  std::vector<std::string> differences(const std::string& checkpoint) const;

  engine::Learner& learner() { return prepared_.learner; }
  const engine::Task& task() const { return *prepared_.task; }
  const data::Source& source() const { return *prepared_.datasets.train; }
  std::shared_ptr<const data::Source> shared_source() const { return prepared_.datasets.train; }
  const config::ResolvedOptions& options() const { return settings_->options(); }
  const engine::EpochPlan& plan() const { return plan_; }
  /// Images that were left out up to here.
  std::vector<data::BadSample> bad_samples() const { return feed_->loader().bad_samples(); }

 private:
  void begin_epoch();
  void require_update(int64_t number) const;

  std::unique_ptr<config::Configuration> given_;
  std::optional<Settings> settings_;  ///< settings of `given_`
  RunSetup prepared_;
  std::optional<engine::Checkpoints> checkpoints_;  ///< only read
  std::unique_ptr<data::DeviceFeed> feed_;
  engine::EpochPlan plan_;
  std::optional<optim::Schedule> schedule_;
  std::optional<engine::Updater> updater_;
  std::optional<engine::EpochFeed> batches_;
  engine::RunProgress at_;
  std::vector<int64_t> rate_cuts_;  ///< updates of the whole run at which the rate was cut
  int64_t last_update_ = 0;
  bool is_in_epoch_ = false;
};

}  // namespace stoker::train
