// SPDX-License-Identifier: Apache-2.0
// report.html: one page that stands alone, for one run or several side by side. No script, no font and no link
// that a browser would load; pictures are part of the page. Knows run records, not files.
#pragma once

#include <string>
#include <vector>

#include "observe/report/run_record.h"

namespace stoker::observe {

/// `made_by`: "stoker train 0.1.0"; `time`: when the page was made, UTC. At least one run; colours repeat after six.
std::string report_page(const std::vector<RunRecord>& runs, const std::string& made_by, const std::string& time);

// Its sections; each is "" when no run has anything to show there.
std::string overview_section(const std::vector<RunRecord>& runs);
std::string curves_section(const std::vector<RunRecord>& runs);
std::string diagnosis_section(const std::vector<RunRecord>& runs);
std::string worst_section(const std::vector<RunRecord>& runs);
std::string time_section(const std::vector<RunRecord>& runs);
std::string resources_section(const std::vector<RunRecord>& runs);
std::string memory_section(const std::vector<RunRecord>& runs);
std::string certainty_section(const std::vector<RunRecord>& runs);
std::string confusion_section(const std::vector<RunRecord>& runs);
/// Options whose values are not the same in all runs; "" for one run.
std::string differences_section(const std::vector<RunRecord>& runs);
std::string options_section(const std::vector<RunRecord>& runs);

/// Colour class of run `index` on a page of several.
int run_colour(size_t index);
/// A swatch in that colour and the path; the path alone on a page of one run.
std::string run_label(const std::vector<RunRecord>& runs, size_t index);

}  // namespace stoker::observe
