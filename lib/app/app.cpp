// SPDX-License-Identifier: Apache-2.0
#include "app/app.h"

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "app/end_command.h"
#include "app/output/failure.h"
#include "app/output/last_line.h"
#include "app/process.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "model/model.h"
#include "model/script/network_library.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;

/// A reader that has seen enough (`| head`) is no error.
void write_stdout(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  if (errno != EPIPE) throw core::errno_error(errno, "write", "standard output", ErrorKind::io);
}

core::LogLevel console_level(const config::LogOptions& options, bool verbose) {
  if (verbose) return core::LogLevel::debug;
  if (options.quiet) return core::LogLevel::warning;
  if (options.log_level == "debug") return core::LogLevel::debug;
  if (options.log_level == "warning") return core::LogLevel::warning;
  if (options.log_level == "error") return core::LogLevel::error;
  return core::LogLevel::info;
}

Outcome list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  write_stdout(text);
  return {core::kExitOk, ""};
}

/// What this program writes about itself; empty where something else was asked for.
std::string document(const config::Configuration& configuration) {
  const config::CommandLine& command = configuration.command;
  if (command.verb == "completion") {
    return config::render_completion(configuration.table, command.document, model::model_names());
  }
  if (command.document == "man") return config::render_man(configuration.table, STOKER_VERSION);
  return command.document == "schema" ? config::render_schema() : "";
}

Outcome dispatch(const Invocation& invocation) {
  config::Configuration& configuration = invocation.configuration;
  const config::CommandLine& command = configuration.command;
  if (command.help || command.version || command.help_markdown) {
    write_stdout(command.help            ? command.verb.empty() && !command.help_all
                                               ? config::render_short_help(configuration.table)
                                               : config::render_help(configuration.table, command.verb)
                            : command.help_markdown ? config::render_markdown(configuration.table)
                                         : "stoker train " STOKER_VERSION "\n");
    return {core::kExitOk, ""};
  }
  const std::string page = document(configuration);
  if (!page.empty()) {
    write_stdout(page);
    return {core::kExitOk, ""};
  }
  if (command.trust_model) model::trust_network_files();
  core::set_console_level(console_level(configuration.options.log, command.verbose));
  if (!configuration.options.log.log_file.empty()) core::open_log_file(configuration.options.log.log_file);
  if (command.verb == "models") return list(model::model_names());
  if (command.verb == "presets") return list(config::preset_names());
  if (command.verb == "eval") return eval(invocation);
  if (command.verb == "predict") return predict(invocation);
  if (command.verb == "bench") return bench(invocation);
  if (command.verb == "pack") return pack(invocation);
  if (command.verb == "check") return check(invocation);
  if (command.verb == "plan") return plan(invocation);
  if (command.verb == "preview") return preview(invocation);
  if (command.verb == "report") return report(invocation);
  if (command.verb == "export") return export_network(invocation);
  if (command.verb == "import") return import_weights(invocation);
  if (command.verb == "audit") return audit(invocation);
  if (command.verb == "ls") return list(invocation);
  if (command.verb == "watch") return watch(invocation);
  if (command.verb == "replay") return replay(invocation);
  if (command.verb == "verify") return verify(invocation);
  if (command.verb == "diff") return diff(invocation);
  if (command.verb == "blame") return blame(invocation);
  return train(invocation);
}

Outcome failed(const Error& error) {
  core::log_error("{}", error.text());
  if (error.kind() == ErrorKind::bug) core::log_error("this is a bug: please report it with the lines above");
  return {core::exit_code(error.kind()), "error"};
}

/// Turns whatever ends a verb into an outcome.
Outcome run_guarded(const Invocation& invocation) {
  try {
    config::parse_command_line(invocation.argc, invocation.argv, invocation.configuration);
    prepare_end_command(invocation.configuration);
    return dispatch(invocation);
  } catch (const core::StopRequested&) {  // before anything was trained: nothing to save
    const bool interrupted = core::stop_signal_name() == "INT";
    const int stopped = static_cast<int>(invocation.configuration.options.run.stop_exit_code);
    return {interrupted ? core::kExitInterrupted : stopped, "signal:" + core::stop_signal_name()};
  } catch (const std::exception& error) {
    return failed(error_of(error, invocation.configuration.options));
  }
}

}  // namespace

int run(int argc, const char* const* argv) {
  prepare_process();
  config::Configuration configuration;
  const Outcome outcome = run_guarded({argc, argv, configuration});
  run_end_command({argc, argv, configuration}, outcome);
  if (outcome.reason.empty()) {  // help and the like: nothing to report
    core::flush_log();
    std::fflush(stdout);
    return outcome.exit_code;
  }
  std::string line = core::format("train: exit={} reason={}", outcome.exit_code, outcome.reason);
  if (outcome.rank >= 0) line += core::format(" rank={}", outcome.rank);
  if (outcome.updates >= 0) line += core::format(" update={}", outcome.updates);
  if (!outcome.metric.empty()) line += core::format(" metric={} value={:.6g}", outcome.metric, outcome.value);
  if (!outcome.checkpoint.empty()) line += " checkpoint=" + core::printable(outcome.checkpoint);
  write_last_line(line);
  return outcome.exit_code;
}

}  // namespace stoker::app
