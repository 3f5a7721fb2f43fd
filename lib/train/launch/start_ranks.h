// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a run on this machine, each a process of this program, and waits for them.
#pragma once

#include "train/failure/rank_location.h"

namespace stoker::train {

struct StartedRanks {
  const char* const* arguments = nullptr;  ///< arguments of this process, which each rank gets, too
  int count = 1;
  int64_t restarts = 0;       ///< how often all are started again after one was lost
  int64_t stopped_code = 75;  ///< exit code of a rank that was stopped cleanly; see --stop-exit-code
};

/// How the ranks ended.
struct RanksEnd {
  int exit_code = 0;        ///< exit code of rank 0, or of the first rank that failed by itself
  bool has_failed = false;  ///< one of them
  std::string
      stopped_by;  ///< the signal, as in "TERM", where rank 0 did not report it; else it has written the last line
  int rank = 0;    ///< that failed
};

/// Starts processes with the command line of this one, forwards signals to them, and ends all when one fails. A rank
/// that was killed is 76, one that crashed core::fault_exit_code(). None outlives this process. Throws
/// Error{os}.
RanksEnd run_ranks(const StartedRanks& ranks);

}  // namespace stoker::train
