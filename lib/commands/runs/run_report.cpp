// SPDX-License-Identifier: Apache-2.0
// A page about runs, from what they left in their directories.
#include <ctime>
#include <utility>

#include "commands/runs/run_report.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "observe/report/report_page.h"
#include "observe/report/run_record.h"
#include "train/failure/result_output.h"

namespace stoker::train {

void write_run_report(const std::vector<std::string>& run_dirs, const std::string& output, int reload_seconds) {
  std::vector<observe::RunRecord> runs;
  std::string left_out;
  for (const std::string& run_dir : run_dirs) {
    const auto has = [&](const char* name) { return core::file_exists(run_dir + "/" + name); };
    const bool is_waiting = has("status.json") && (!has("metrics.jsonl") || !has("summary.csv"));
    if (!is_waiting) {
      runs.push_back(observe::read_run_record(run_dir));
    } else if (reload_seconds > 0 && run_dirs.size() == 1) {
      runs.emplace_back().path = run_dir;
    } else {
      left_out += (left_out.empty() ? "" : ", ") + core::printable(run_dir);
    }
  }
  if (runs.empty() && reload_seconds > 0) runs.emplace_back().path = run_dirs.at(0);
  if (runs.empty()) runs.push_back(observe::read_run_record(run_dirs.at(0)));  // its error names what is missing
  if (!left_out.empty() && reload_seconds == 0) core::log_warning("no training yet, left out: {}", left_out);
  write_result(output, observe::report_page(std::move(runs), "stoker train " STOKER_VERSION,
                                            core::utc_text(std::time(nullptr)), reload_seconds));
}

}  // namespace stoker::train
