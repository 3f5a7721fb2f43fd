// SPDX-License-Identifier: Apache-2.0
// Runs below a folder, from a few small files of each: where they stand, how good they are, what differs, how fast, how
// old.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "observe/report/run_record.h"

namespace stoker::observe {

struct ListedRun {
  std::string path;
  /// "training", "finished", "stopped", "failed", as status.json has it; "lost": training by its status, but no process
  /// holds the run's lock: it was killed, or its machine went down; "unknown" without a status.json.
  std::string state;
  std::string reason;  ///< why it ended: "epochs-done", "signal:TERM"; empty: it has not
  int64_t epochs_done = 0;
  int64_t epochs = 0;  ///< planned; 0: not known
  int64_t updates = 0;
  std::string best_metric;        ///< "top1"; empty: nothing was evaluated
  double best_value = 0;          ///< in the unit of summary.csv
  int64_t best_epoch = 0;         ///< from 1
  double images_per_second = -1;  ///< rate in the last report or epoch; < 0: not known
  double age_seconds = -1;        ///< since the run last wrote its status; < 0: not known
  RunRecord record;               ///< options and epochs alone
};

/// Runs below `folder`, which may be a run itself, at most four folders deep, in the order of sort_runs(). A
/// run whose files are damaged is listed with what can be read. `now`: seconds since 1970. Throws no_input when there
/// is no such folder.
std::vector<ListedRun> list_runs(const std::string& folder, int64_t now);
/// One run. Throws no_input when it is not a run directory.
ListedRun list_run(const std::string& path, int64_t now);

/// Those with a result first, the best of each metric before the others; then those that train, then by age.
void sort_runs(std::vector<ListedRun>& runs);

/// A line per run under a heading, with the options in which the runs differ; an empty line between runs of different
/// metrics, whose values cannot be compared.
std::string runs_table(const std::vector<ListedRun>& runs);
core::Json runs_json(const std::vector<ListedRun>& runs);

/// "2026-11-21T05:41:36Z" and with fractions of a second, as seconds since 1970; -1 for other text.
int64_t seconds_of_utc(const std::string& text);

}  // namespace stoker::observe
