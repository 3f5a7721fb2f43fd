// SPDX-License-Identifier: Apache-2.0
// report.html of runs: at the end of one (--report) and by `train runs --html`.
#pragma once

#include <string>
#include <vector>

namespace stoker::train {

/// Reads the run directories and writes one page about them to `output`, which may be "-". Throws no_input, data, and
/// what write_result throws.
void write_run_report(const std::vector<std::string>& run_dirs, const std::string& output);

}  // namespace stoker::train
