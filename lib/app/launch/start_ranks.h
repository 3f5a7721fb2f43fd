// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a run on this machine, each a process of this program, and waits for them.
#pragma once

#include "app/launch/rank_place.h"

namespace stoker::app {

/// How the ranks ended.
struct RanksEnd {
  int exit_code = 0;    ///< of rank 0, or of the first rank that failed by itself
  bool is_told = true;  ///< rank 0 has written the last line: none failed
};

/// Starts `count` processes with the command line of this one, forwards signals to them, and ends all when one fails. A
/// rank that was killed is 76. None outlives this process. Throws Error{os}.
RanksEnd run_ranks(const char* const* arguments, int count);

/// In a process that run_ranks() started: sees to it that it ends with the process that did. Call early.
void end_with_starter();

}  // namespace stoker::app
