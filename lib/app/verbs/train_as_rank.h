// SPDX-License-Identifier: Apache-2.0
// The verb `train` in one process, which may be one of several; and work that may be dealt to several, whatever it is.
#pragma once

#include <functional>
#include <string>

#include "app/app.h"
#include "app/launch/joined_ranks.h"

namespace stoker::app {

/// Trains from scratch or from a checkpoint. Rank 0 writes the files of the run; the others keep a log of their own.
Outcome train_as_rank(const Invocation& invocation, const JoinedRanks& ranks);

/// What one of several ranks does.
using RankWork = std::function<Outcome(const JoinedRanks& ranks)>;
/// Joins the other ranks and does `work`. What ends this rank ends all, and they learn why: the first that cannot go on
/// says why on its console and in the last line, the others keep it in their logs. Throws what ends the process where
/// it is to say so.
Outcome work_with_others(const Invocation& invocation, const RankPlace& place, const RankWork& work);

/// Does `work` alone, as one of several ranks, or, with --devices, starts the ranks that do it and waits for them. A
/// dry run does it as the first of them would, and starts none. `check` may refuse a number of ranks, which `who`
/// names: "devices 3", "the 3 ranks of mpirun".
using RankCheck = std::function<void(int ranks, const std::string& who)>;
Outcome work_on_devices(const Invocation& invocation, const RankWork& work, const RankCheck& check = {});

}  // namespace stoker::app
