// SPDX-License-Identifier: Apache-2.0
// The records of a run: checkpoints, digests of updates, and the options under which each part was computed.
// Reads files only, no networks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stoker::train {

/// The record of one update.
struct UpdateDigests {
  int64_t epoch = 0;  ///< from 1
  std::string weights, images;
};

struct RecordedReport {
  int64_t updates = 0;  ///< done
  double loss = 0;      ///< mean since the report before; may be infinite
  int64_t skipped = 0;  ///< updates so far whose float16 gradients overflowed
};

struct RecordedRun {
  std::string path;                            ///< run directory
  std::map<int64_t, std::string> checkpoints;  ///< by updates: those that are there, whole or not
  std::map<int64_t, UpdateDigests> digests;    ///< by update, from 1; those that a resume has not left behind
  int64_t updates = 0;                         ///< the last that anything is known of
  std::vector<RecordedReport> reports;         ///< in order
  int64_t damaged_line = 0;  ///< line number in metrics.jsonl: the first before the last that is not a record; 0: none
  bool failed = false;       ///< it ended by an error, as what diverges does

  /// The newest checkpoint of at most `most_updates` updates; "": there is none, and the run is computed from its
  /// beginning.
  std::string checkpoint_before(int64_t most_updates) const;
  /// The first of its last reports between which every update was skipped, as an index; reports.size(): the last report
  /// saw one that was not.
  size_t first_report_of_skips() const;
  /// The configuration under which update number `update` was computed: that of the next checkpoint, which its process
  /// wrote, else that of the last start.
  std::string config_path(int64_t update) const;
};

/// `path`: a run directory, or a checkpoint in one. A line that is no JSON is left out: a process that was killed tears
/// one. Throws Error{no_input} where `path` is neither, or a record is not a regular file; {data} for a digest without
/// its fields, for a line or file that is longer than a run writes; {permission, io}.
RecordedRun read_recorded_run(const std::string& path);

/// Throws Error{usage} where the run has not done update number `update` yet, which --update names.
void require_done(int64_t update, const RecordedRun& run);

}  // namespace stoker::train
