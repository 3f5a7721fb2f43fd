// SPDX-License-Identifier: Apache-2.0
// `train` in one process, which may be one of several.
#pragma once

#include "commands/command.h"
#include "commands/train/train.h"
#include "train/launch/joined_ranks.h"

namespace stoker::train {

/// Trains from scratch or from a checkpoint. Rank 0 writes the files of the run; the others keep a log of their own.
Outcome train_as_rank(const Context& context, const TrainFlags& flags, const JoinedRanks& ranks);

}  // namespace stoker::train
