// SPDX-License-Identifier: Apache-2.0
// One or several runs on a terminal: a line on where each stands, and curves of plain characters. Takes run records,
// independent of the terminal.
#pragma once

#include <string>
#include <vector>

#include "observe/report/run_record.h"
#include "observe/report/svg_chart.h"
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

// A line chart of plain characters, for terminals of any kind. Takes numbers and labels, not runs.

/// The chart as `rows` lines of exactly `columns` characters: a title with the last value of each line, then the curves
/// between axes. Marks are the letters of `marks`, one per line of the chart; where curves cross, the earlier line is
/// seen. None when no line has a point. At least 30 columns and 6 rows.
std::vector<std::string> text_chart(const Chart& chart, const std::string& marks, int columns, int rows);

/// Blocks of lines side by side, two blanks apart; shorter ones are filled up.
std::vector<std::string> side_by_side(const std::vector<std::vector<std::string>>& blocks);

}  // namespace stoker::observe
