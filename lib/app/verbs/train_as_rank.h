// SPDX-License-Identifier: Apache-2.0
// The verb `train` in one process, which may be one of several; and work of several ranks, whatever it is.
#pragma once

#include <functional>

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

}  // namespace stoker::app
