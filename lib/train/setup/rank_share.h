// SPDX-License-Identifier: Apache-2.0
// What one of several ranks may take of the machine that it shares with others, and what they agree on.
#pragma once

#include "core/system/machine.h"
#include "engine/checkpoint/checkpoint.h"
#include "train/launch/joined_ranks.h"
#include "train/setup/run_setup.h"

namespace stoker::train {

/// CPUs and free memory of each of `processes` processes, with the device of the first.
core::MachineFacts machine_shared_by(core::MachineFacts machine, int64_t processes);
/// CPUs and free memory of a rank, where all ranks of the machine get as much; and which of the machine's GPUs is its.
core::MachineFacts share_of_machine(const RankPlace& place);
RunShare share_of_run(const JoinedRanks& ranks);
/// share_of_run() for ranks that all choose by themselves, in the same steps: an automatic batch-size becomes the least
/// that any rank has chosen. `ranks` outlives it.
RunShare share_of_trial(const JoinedRanks& ranks);

/// Throws Error{config} on all ranks where one was given other options that bits depend on, or is another program.
void refuse_unequal_commands(const JoinedRanks& ranks, const config::Configuration& given);
/// Rank 0 alone resolves, from what it has measured; the others wait here, and take over what it has found, after which
/// nothing is automatic. Rank 0 calls it with its options when they are complete.
void give_options(const JoinedRanks& ranks, const config::ResolvedOptions& resolved);
void take_options(const JoinedRanks& ranks, config::Configuration& given);
/// Throws Error{config} on all ranks unless they are about to train the same on the same data.
void refuse_unequal_ranks(const JoinedRanks& ranks, const engine::RunIdentity& identity);

}  // namespace stoker::train
