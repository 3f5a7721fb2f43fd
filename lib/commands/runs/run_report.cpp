// SPDX-License-Identifier: Apache-2.0
// A page about runs, from what they left in their directories.
#include <ctime>

#include "commands/runs/run_report.h"
#include "core/format.h"
#include "observe/report/report_page.h"
#include "observe/report/run_record.h"
#include "train/failure/result_output.h"

namespace stoker::train {
void write_run_report(const std::vector<std::string>& run_dirs, const std::string& output) {
  std::vector<observe::RunRecord> runs;
  for (const std::string& run_dir : run_dirs) runs.push_back(observe::read_run_record(run_dir));
  write_result(output, observe::report_page(runs, "stoker train " STOKER_VERSION, core::utc_text(std::time(nullptr))));
}

}  // namespace stoker::train
