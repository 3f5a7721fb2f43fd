// SPDX-License-Identifier: Apache-2.0
// report.html of runs: at the end of one (--report) and by `train runs --html`.
#pragma once

#include <string>
#include <vector>

namespace stoker::train {

/// report.html of a run directory, as an output. A symbolic link there is removed: a run may be somebody else's, and
/// its records are not written through links. An output that somebody names is another matter.
std::string report_file(const std::string& run_dir);

/// Reads the run directories and writes one page about them to `output`, which may be "-". Of several, those that have
/// not begun to train are left out; a page that reloads itself (`reload_seconds` > 0) shows them without curves.
/// `folder`: that the runs lie in; the page has the table of a sweep there. Throws no_input, data, and what
/// write_result throws.
void write_run_report(const std::vector<std::string>& run_dirs, const std::string& output, int reload_seconds = 0,
                      const std::string& folder = "");

}  // namespace stoker::train
