// SPDX-License-Identifier: Apache-2.0
// What one of several ranks may take of the machine that it shares with others, and what they agree on.
#pragma once

#include "app/launch/joined_ranks.h"
#include "app/setup/run_setup.h"
#include "core/system/machine.h"

namespace stoker::app {

/// CPUs and free memory of a rank, where all ranks of the machine get as much.
core::MachineFacts share_of_machine(const RankPlace& place);
/// `ranks` outlives it. An automatic batch-size becomes the least that any rank has chosen.
RunShare share_of_run(const JoinedRanks& ranks);

}  // namespace stoker::app
