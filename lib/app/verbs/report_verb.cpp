// SPDX-License-Identifier: Apache-2.0
// `train report`: a page about runs, from what they left in their directories.
#include <algorithm>
#include <ctime>
#include <filesystem>

#include "app/app.h"
#include "app/output/result_output.h"
#include "app/output/run_report.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "observe/report/report_page.h"
#include "observe/report/run_record.h"
#include "observe/runs/run_listing.h"

namespace stoker::app {
namespace {

/// Run directories, with the runs below folders that are none themselves in their place, by name.
std::vector<std::string> runs_of(const std::vector<std::string>& folders) {
  std::vector<std::string> runs;
  for (const std::string& folder : folders) {
    std::vector<std::string> below;
    std::error_code unknown;
    if (std::filesystem::is_directory(folder, unknown)) {
      for (const observe::ListedRun& run : observe::list_runs(folder, std::time(nullptr))) below.push_back(run.path);
    }
    std::sort(below.begin(), below.end());
    if (below.empty()) below.push_back(folder);  // reading it says what is wrong
    runs.insert(runs.end(), below.begin(), below.end());
  }
  return runs;
}

}  // namespace

void write_run_report(const std::vector<std::string>& run_dirs, const std::string& output) {
  std::vector<observe::RunRecord> runs;
  for (const std::string& run_dir : run_dirs) runs.push_back(observe::read_run_record(run_dir));
  write_result(output, observe::report_page(runs, "stoker train " STOKER_VERSION, core::utc_text(std::time(nullptr))));
}

Outcome report(const Invocation& invocation) {
  const config::CommandLine& command = invocation.configuration.command;
  std::string output = command.output;
  if (output.empty()) output = command.run_dirs.size() == 1 ? command.run_dirs[0] + "/report.html" : "report.html";
  write_run_report(runs_of(command.run_dirs), output);
  if (output != "-") core::log_info("written: {}", core::printable(output));
  return {core::kExitOk, "reported"};
}

}  // namespace stoker::app
