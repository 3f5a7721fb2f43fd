// SPDX-License-Identifier: Apache-2.0
// The verb `train` in one process, which may be one of several.
#pragma once

#include "app/app.h"
#include "app/launch/joined_ranks.h"

namespace stoker::app {

/// Trains from scratch or from a checkpoint. Rank 0 writes the files of the run; the others keep a log of their own.
Outcome train_as_rank(const Invocation& invocation, const JoinedRanks& ranks);

}  // namespace stoker::app
