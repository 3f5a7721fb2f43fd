// SPDX-License-Identifier: Apache-2.0
// A line chart of plain characters, for terminals of any kind. Takes numbers and labels, not runs.
#pragma once

#include <string>
#include <vector>

#include "observe/report/svg_chart.h"

namespace stoker::observe {

/// The chart as `rows` lines of exactly `columns` characters: a title with the last value of each line, then the curves
/// between axes. Marks are the letters of `marks`, one per line of the chart; where curves cross, the earlier line is
/// seen. None when no line has a point. At least 30 columns and 6 rows.
std::vector<std::string> text_chart(const Chart& chart, const std::string& marks, int columns, int rows);

/// Blocks of lines side by side, two blanks apart; shorter ones are filled up.
std::vector<std::string> side_by_side(const std::vector<std::vector<std::string>>& blocks);

}  // namespace stoker::observe
