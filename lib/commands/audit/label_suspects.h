// SPDX-License-Identifier: Apache-2.0
// Which labels of a data set look wrong to the networks of a run: the loss of every sample, over the checkpoints that
// the run has kept.
#pragma once

#include <vector>

#include "commands/audit/audited.h"
#include "commands/eval/loaded_model.h"

namespace stoker::train {

/// Paths of the checkpoints that a run has kept, or of the one that is named; of many some that are spread evenly.
/// Throws Error{no_input} where there is none.
std::vector<std::string> scoring_checkpoints(const std::string& run_or_checkpoint);

/// Evaluates each of `checkpoints` on every split. `loaded`: its network is built for the first of them; it is left
/// with the weights of the last. `listed`: how many suspects of each split are named. Throws core::StopRequested.
std::vector<SplitSuspects> find_label_suspects(LoadedModel& loaded, const std::vector<std::string>& checkpoints,
                                               const std::vector<data::SplitToAudit>& splits, int64_t listed);

}  // namespace stoker::train
