// SPDX-License-Identifier: Apache-2.0
// One or several runs on a terminal: a line on where each stands, and curves of plain characters. Takes run records,
// independent of the terminal.
#pragma once

#include <string>
#include <vector>

#include "observe/report/run_record.h"
#include "observe/runs/run_listing.h"

namespace stoker::observe {

struct WatchedRun {
  ListedRun listed;
  RunRecord record;
};

/// Lines of at most `columns` characters, at most `rows` of them. At least one run.
std::vector<std::string> watch_view(const std::vector<WatchedRun>& runs, int columns, int rows);

/// Whether a run will write nothing more.
bool has_ended(const ListedRun& run);

}  // namespace stoker::observe
