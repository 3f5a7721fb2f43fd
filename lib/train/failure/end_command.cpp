// SPDX-License-Identifier: Apache-2.0
#include "train/failure/end_command.h"

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/child_process.h"
#include "train/failure/crash_command.h"
#include "train/failure/rank_place.h"

namespace stoker::train {
namespace {

/// Of a command that started the ranks of a run: only they have more.
std::string reason_of(const Outcome& outcome) {
  if (!outcome.reason.empty()) return outcome.reason;
  return outcome.exit_code == core::kExitOk ? "finished" : "stopped";
}

bool ends_the_run(const config::DeviceOptions& device) {
  try {
    const auto place = rank_place(process_environment, {static_cast<int>(device.devices.count), device.listen});
    return !place || (place->rank == 0 && place->starter != "train");
  } catch (const core::Error&) {
    return true;  // a place that cannot be understood is how this run ended
  }
}

}  // namespace

void prepare_end_command(const std::string& command, const config::Options& options) {
  if (!command.empty() && ends_the_run(options.device)) prepare_crash_command(command);
}

void run_end_command(const std::string& command, const config::Options& options, const std::string& run_dir,
                     const Outcome& outcome) {
  if (!ends_the_run(options.device)) return;
  core::flush_log();
  const bool has_result = !outcome.metric.empty();
  try {
    const int code = core::run_child({{"/bin/sh", "-c", command},
                                      {{"STOKER_EXIT_CODE", std::to_string(outcome.exit_code)},
                                       {"STOKER_REASON", reason_of(outcome)},
                                       {"STOKER_RUN_DIR", run_dir},
                                       {"STOKER_METRIC", outcome.metric},
                                       {"STOKER_BEST", has_result ? core::format("{:.6g}", outcome.value) : ""},
                                       {"STOKER_UPDATES", outcome.updates < 0 ? "" : std::to_string(outcome.updates)},
                                       {"STOKER_CHECKPOINT", outcome.checkpoint}}});
    if (code != 0) core::log_warning("--on-end: the command ended with exit code {}", code);
  } catch (const core::Error& error) {
    core::log_warning("--on-end: {}", error.what());
  }
}

}  // namespace stoker::train
