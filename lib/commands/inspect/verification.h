// SPDX-License-Identifier: Apache-2.0
// Whether a run matches its records: its checkpoints against each other and against its records, and the updates
// between them recomputed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/inspect/recomputation.h"
#include "commands/inspect/recorded_run.h"

namespace stoker::train {

/// The updates from one checkpoint to the next: an interval of `train inspect verify`.
struct UpdateRange {
  int64_t from = 0, to = 0;  ///< updates done; 0: the beginning
};

/// All of them that end with a checkpoint that is there, in order.
std::vector<UpdateRange> update_ranges(const RecordedRun& run);
/// `count` of them by chance, in order; 0 or more than there are: all.
std::vector<UpdateRange> drawn_ranges(const std::vector<UpdateRange>& all, int64_t count);

struct Findings {
  std::vector<std::string> problems;  ///< records that are wrong
  std::vector<std::string> notes;     ///< remarks
};

/// Without computing: files, digests of weights, the chain of checkpoints, the records.
Findings check_records(const RecordedRun& run);

/// Checks one range: each recorded update in it, and all tensors of the checkpoint at its end.
struct RangeResult {
  std::vector<std::string> problems;
  int64_t updates = 0;   ///< computed
  int64_t compared = 0;  ///< digests of updates that were compared
  double seconds = 0;
};
/// Throws core::StopRequested, Error{bug, out_of_memory, io}; else what keeps it from being computed is a problem.
RangeResult verify_range(const config::CommandLine& line, const RecordedRun& run, const UpdateRange& range);

/// Seconds of training and validation that the run recorded; 0: unknown.
double seconds_of(const RecordedRun& run);

}  // namespace stoker::train
