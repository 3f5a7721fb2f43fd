// SPDX-License-Identifier: Apache-2.0
// report.html: one page that stands alone, for one run or several side by side. No script, no font and no link
// that a browser would load; pictures are part of the page. Reads run records, not files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "observe/report/run_record.h"
#include "observe/report/run_record_files.h"

namespace stoker::observe {

/// `made_by`: "stoker train 0.1.0"; `time`: when the page was made, UTC; `reload_seconds`: see page_of(). At least one
/// run. Several are sorted, the best first; the first six have colours. `tables`: of the sweep that they are; empty:
/// they are none.
std::string report_page(std::vector<RunRecord> runs, const std::string& made_by, const std::string& time,
                        int reload_seconds = 0, const SweepTables& tables = {});

// Its sections, in order; each is "" when no run has anything to show there.
/// Which combinations of a sweep are better than others by more than chance, and which advanced where it halves.
std::string comparison_section(const SweepTables& tables);
std::string outcome_section(const std::vector<RunRecord>& runs);
/// The metric over each option in which several runs differ.
std::string sweep_section(const std::vector<RunRecord>& runs);
std::string curves_section(const std::vector<RunRecord>& runs);
std::string confusion_section(const std::vector<RunRecord>& runs);
std::string worst_section(const std::vector<RunRecord>& runs);
std::string ordinary_section(const std::vector<RunRecord>& runs);
std::string certainty_section(const std::vector<RunRecord>& runs);
std::string threshold_section(const std::vector<RunRecord>& runs);
std::string numbers_section(const std::vector<RunRecord>& runs);
std::string diagnosis_section(const std::vector<RunRecord>& runs);
std::string time_section(const std::vector<RunRecord>& runs);
std::string resources_section(const std::vector<RunRecord>& runs);
std::string memory_section(const std::vector<RunRecord>& runs);
std::string facts_section(const std::vector<RunRecord>& runs);
std::string options_section(const std::vector<RunRecord>& runs);

/// Colour class of run `index` on a page of several: one of its own, or that of all the others.
int run_colour(size_t index);
/// A swatch in that colour and the path; the path alone on a page of one run.
std::string run_label(const std::vector<RunRecord>& runs, size_t index);
/// The output of `show` for each run; of several each in an element to open, the first is open, at most six are shown.
std::string per_run(const std::vector<RunRecord>& runs, const std::function<std::string(const RunRecord&)>& show);

/// Whether a column has nothing to show: top5 where each epoch has 100 %, as with five classes.
bool is_trivial(const RunRecord& run, const std::string& column);
/// The unit of a metric of summary.csv: "percent", "share" (at most 1) or "value".
std::string unit_of(const std::string& metric);

}  // namespace stoker::observe
