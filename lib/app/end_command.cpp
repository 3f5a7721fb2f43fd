// SPDX-License-Identifier: Apache-2.0
#include "app/end_command.h"

#include "app/launch/rank_place.h"
#include "app/output/crash_command.h"
#include "app/setup/settings.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/child_process.h"

namespace stoker::app {
namespace {

/// As the run itself finds it; empty for options that are wrong.
std::string run_directory(const config::Configuration& configuration) {
  try {
    return Settings(configuration).options().run.run_dir;
  } catch (const core::Error&) {
    return "";
  }
}

/// Of a command that started the ranks of a run: they alone know more.
std::string reason_of(const Outcome& outcome) {
  if (!outcome.reason.empty()) return outcome.reason;
  return outcome.exit_code == core::kExitOk ? "finished" : "stopped";
}

bool ends_the_run(const config::Configuration& configuration) {
  const config::DeviceOptions& device = configuration.options.device;
  try {
    const auto place = rank_place(process_environment, {static_cast<int>(device.devices.count), device.listen});
    return !place || (place->rank == 0 && place->starter != "train");
  } catch (const core::Error&) {
    return true;  // a place that cannot be understood is how this run ended
  }
}

bool is_asked_for(const config::Configuration& configuration) {
  const config::CommandLine& command = configuration.command;
  const bool says_something = command.help || command.version || command.help_markdown || !command.document.empty();
  const bool trains = command.verb.empty() && !command.dry_run && !command.print_config && !says_something;
  return !command.on_end.empty() && trains && ends_the_run(configuration);
}

}  // namespace

void prepare_end_command(const config::Configuration& configuration) {
  if (is_asked_for(configuration)) prepare_crash_command(configuration.command.on_end);
}

void run_end_command(const Invocation& invocation, const Outcome& outcome) {
  const config::Configuration& configuration = invocation.configuration;
  if (!is_asked_for(configuration)) return;
  core::flush_log();
  const bool has_result = !outcome.metric.empty();
  try {
    const int code = core::run_child({{"/bin/sh", "-c", configuration.command.on_end},
                                      {{"STOKER_EXIT_CODE", std::to_string(outcome.exit_code)},
                                       {"STOKER_REASON", reason_of(outcome)},
                                       {"STOKER_RUN_DIR", run_directory(configuration)},
                                       {"STOKER_METRIC", outcome.metric},
                                       {"STOKER_BEST", has_result ? core::format("{:.6g}", outcome.value) : ""},
                                       {"STOKER_UPDATES", outcome.updates < 0 ? "" : std::to_string(outcome.updates)},
                                       {"STOKER_CHECKPOINT", outcome.checkpoint}}});
    if (code != 0) core::log_warning("--on-end: the command ended with exit code {}", code);
  } catch (const core::Error& error) {
    core::log_warning("--on-end: {}", error.what());
  }
}

}  // namespace stoker::app
