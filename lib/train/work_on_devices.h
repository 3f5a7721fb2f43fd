// SPDX-License-Identifier: Apache-2.0
// Work that may be distributed to several ranks: alone, as one of them, or as the command that starts them.
#pragma once

#include <functional>
#include <string>

#include "config/options.h"
#include "train/launch/joined_ranks.h"
#include "train/outcome.h"

namespace stoker::train {

/// The work of one of several ranks.
using RankWork = std::function<Outcome(const JoinedRanks& ranks)>;
/// Joins the other ranks and does `work`. What ends this rank ends all, and they learn why: the first that cannot
/// continue reports the cause on its console and in the last line, the others keep it in their logs. Throws what ends
/// the process where it is to report it.
Outcome work_as_rank(const config::Options& options, const RankLocation& place, const RankWork& work);

/// Does `work` alone, as one of several ranks, or, with --devices, starts the ranks that do it (`argv` again) and waits
/// for them. `only_plans`: does it as the first of them would, and starts none. `check` may refuse a number of ranks,
/// which `who` names: "devices 3", "the 3 ranks of mpirun".
using RankCheck = std::function<void(int ranks, const std::string& who)>;
Outcome work_on_devices(const char* const* argv, config::Options& options, const RankWork& work,
                        bool only_plans = false, const RankCheck& check = {});

}  // namespace stoker::train
