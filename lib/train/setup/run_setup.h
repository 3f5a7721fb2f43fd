// SPDX-License-Identifier: Apache-2.0
// A run up to the point where its memory is planned: what `train` and `train plan` have in common.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/system/machine.h"
#include "data/open_datasets.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/step/learner.h"
#include "engine/task/task.h"
#include "plan/memory_plan.h"
#include "train/launch/joined_ranks.h"
#include "train/setup/compute_choices.h"
#include "train/setup/loader_tuning.h"
#include "train/setup/settings.h"

namespace stoker::train {

struct RunSetup {
  data::Datasets datasets;
  int64_t data_bytes = 0;  ///< that opening the data took
  std::unique_ptr<engine::Task> task;
  engine::Learner learner;
  Caches caches;
  std::optional<double> bfloat16_speed;      ///< training speed on a CPU in bfloat16 over float32; absent: not measured
  std::optional<double> other_layout_speed;  ///< training speed in the layout not requested; absent: not measured
  plan::PlanInputs inputs;
  plan::MemoryBudget budget;  ///< as it was when the plan was made
};

/// Opens the data; settings learn of data and network. `measure`: find the number of workers by measurement where it is
/// automatic.
void set_up_data(Settings& settings, bool measure, RunSetup& prepared);

/// The other processes of a run, as far as its setup has to do with them.
struct RunShare {
  int64_t ranks = 1;
  int64_t processes = 1;  ///< number of ranks on this machine, which share its memory
  /// The batch-size that all take, of what each has chosen; empty: there are no others.
  std::function<config::Measured<int64_t>(const config::Measured<int64_t>& own)> agree_on_batch = {};
  FromRoot from_root = {};       ///< see measure_amp()
  bool root_has_proven = false;  ///< that the libraries are right: this rank has taken over what was found
  /// Called before anything is computed, with a plan that lacks activations; empty: no such plan is made.
  std::function<void(const engine::Learner& learner, const plan::PlanInputs& inputs)> on_known = {};
};

/// Opens the device, builds what is trained, measures its memory, chooses an automatic batch, and puts the data behind
/// caches that leave memory for the rest. Nothing is open in the settings afterwards. Refuses nothing but a network
/// that does not fit.
void set_up_training(Settings& settings, bool resumes, RunSetup& prepared, const RunShare& share = {});

// The share of the machine for one of several ranks, and the values that all ranks agree on.

/// CPUs and free memory of each of `processes` processes, with the device of the first.
core::MachineFacts machine_shared_by(core::MachineFacts machine, int64_t processes);
/// CPUs and free memory of a rank, where all ranks of the machine get as much; and which of the machine's GPUs is its.
core::MachineFacts share_of_machine(const RankLocation& place);
RunShare share_of_run(const JoinedRanks& ranks);
/// share_of_run() for ranks that all choose by themselves, in the same steps: an automatic batch-size becomes the least
/// that any rank has chosen. `ranks` outlives it.
RunShare share_of_trial(const JoinedRanks& ranks);

/// Throws Error{config} on all ranks where one was given other options that bits depend on, or is another program.
void refuse_unequal_commands(const JoinedRanks& ranks, const config::Configuration& given);
/// Rank 0 alone resolves, from what it has measured; the others wait here, and take over what it has found, after which
/// nothing is automatic. Rank 0 calls it with its options when they are complete.
void publish_options(const JoinedRanks& ranks, const config::ResolvedOptions& resolved);
void adopt_options(const JoinedRanks& ranks, config::Configuration& given);
/// Throws Error{config} on all ranks unless they are about to train the same on the same data.
void refuse_unequal_ranks(const JoinedRanks& ranks, const engine::RunIdentity& identity);

}  // namespace stoker::train
