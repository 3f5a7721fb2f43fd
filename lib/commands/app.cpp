// SPDX-License-Identifier: Apache-2.0
#include "commands/app.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "commands/command.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "model/names.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;

core::LogLevel console_level(const config::LogOptions& options, bool verbose) {
  if (verbose) return core::LogLevel::debug;
  if (options.quiet) return core::LogLevel::warning;
  if (options.log_level == "debug") return core::LogLevel::debug;
  if (options.log_level == "warning") return core::LogLevel::warning;
  if (options.log_level == "error") return core::LogLevel::error;
  return core::LogLevel::info;
}

/// Help and version; empty where something else was requested.
std::string page(const Context& context) {
  const config::CommonFlags& flags = context.configuration.flags;
  const config::Table& table = context.configuration.table;
  const config::Syntax& chosen = *context.line.syntax;
  if (flags.version) return "stoker train " STOKER_VERSION "\n";
  if (flags.help_all || (flags.help && !chosen.name.empty())) {
    return config::render_help(table, context.line.others, chosen);
  }
  return flags.help ? config::render_short_help(table, context.line.others) : "";
}

[[noreturn]] void become_full_program(const char* const* argv) {
  const std::string path = core::find_beside_program("stoker-train", "../libexec/stoker");
  std::error_code ignored;
  if (std::filesystem::equivalent(path, "/proc/self/exe", ignored)) {
    throw Error(ErrorKind::bug, "no function is linked for this command",
                "is its source in lib/commands/CMakeLists.txt?");
  }
  core::throw_if_stopped();
  core::hold_stop_signals();  // until it can take them
  ::execv(path.c_str(), const_cast<char* const*>(argv));
  const int error = errno;
  core::install_stop_signals();
  throw Error(ErrorKind::unavailable,
              path.empty() ? "stoker-train is neither beside this program nor in ../libexec/stoker"
                           : core::format("{} cannot be started: {}", path, std::strerror(error)),
              "install both from the same build");
}

/// `names`: with commas.
void add_stop_signals(const std::string& names) {
  std::vector<int> numbers;
  for (const std::string& name : names.empty() ? std::vector<std::string>() : config::split_words(names, ',')) {
    numbers.push_back(core::stop_signal_number(name));
  }
  core::add_stop_signals(numbers);
}

/// One that cannot be written would be found when everything is computed.
void require_outputs(const Command& command) {
  for (const config::Flag& flag : command.flags) {
    if (flag.output == nullptr || flag.output->empty()) continue;
    (flag.writes == config::Flag::Writes::folder ? require_folder_output : require_file_output)(*flag.output);
  }
}

Outcome run_command(const Command& command, const Context& context, const Program& program) {
  config::parse_command_line(context.line, context.configuration);
  add_stop_signals(context.configuration.options.run.stop_signals);
  const std::string text = page(context);
  if (!text.empty()) {
    write_page(text);
    return {core::kExitOk, ""};
  }
  if (!context.configuration.flags.print_config) require_outputs(command);
  if (!command.run) become_full_program(context.argv);
  program.begin(context.configuration.flags);
  const config::LogOptions& log = context.configuration.options.log;
  core::set_console_level(console_level(log, context.configuration.flags.verbose));
  if (!log.log_file.empty()) {
    const bool is_of_file = context.configuration.table.row_of(log.log_file).origin.kind == config::Origin::Kind::file;
    if (is_of_file) config::refuse_log_file_elsewhere(context.configuration);
    const std::string folder = std::filesystem::path(log.log_file).parent_path().string();
    if (!folder.empty()) core::make_directories(folder);
    core::open_log_file(log.log_file, /*may_be_link=*/!is_of_file);
  }
  return command.run(context);
}

/// Where the relative paths of files and presets that an error is about were looked for.
std::string absolute_paths_note(const Error& error, const config::Table& table) {
  using Kind = config::Origin::Kind;
  const std::string message = error.what();
  std::string text;
  for (const config::Row& row : table.rows()) {
    const auto takes = [&](const char* word) { return row.placeholder.find(word) != std::string::npos; };
    const bool is_path = takes("DIR") || takes("FILE");
    const std::string path = is_path && row.origin.kind == Kind::file ? row.render() : "";
    const bool is_word = path == "auto" || path == "last" || path == "best" || path == "none";
    if (path.empty() || is_word || path[0] == '/' || message.find(path) == std::string::npos) continue;
    text += core::format("\nnote: {} {} ({}) was looked for at {}: relative paths start where the program was started",
                         row.name, core::printable(path), row.origin.detail,
                         core::printable(std::filesystem::absolute(path).string()));
  }
  return error.kind() == ErrorKind::no_input ? text : "";
}

Outcome failed(const Error& error, const config::Table& table) {
  core::log_error("{}{}", error.text(), absolute_paths_note(error, table));
  if (error.kind() == ErrorKind::bug) core::log_error("this is a bug: please report it with the lines above");
  return {core::exit_code(error.kind()), "error"};
}

/// Turns whatever ends `work` into an outcome.
template <typename Work>
Outcome outcome_of(const Work& work, const Program& program, const config::Configuration& configuration) {
  const config::Options& options = configuration.options;
  try {
    return work();
  } catch (const core::StopRequested&) {  // before anything was trained: nothing to save
    const std::string signal = core::stop_signal_name();
    const bool interrupted = signal == "INT";
    core::log_info("stopped by {}: nothing more is saved; run the same command again",
                   signal == core::kJobEnd ? "the end of the job" : "SIG" + signal);
    return {interrupted ? core::kExitInterrupted : static_cast<int>(options.run.stop_exit_code),
            core::stop_reason(signal)};
  } catch (const std::exception& error) {
    return failed(program.error_of(error, options), configuration.table);
  }
}

int end(const Outcome& outcome) {
  if (outcome.reason.empty()) {  // help and the like: nothing to report
    core::flush_log();
    std::fflush(stdout);
    return outcome.exit_code;
  }
  std::string line = core::format("train: exit={} reason={}", outcome.exit_code, outcome.reason);
  if (outcome.rank >= 0) line += core::format(" rank={}", outcome.rank);
  if (outcome.updates >= 0) line += core::format(" update={}", outcome.updates);
  if (!outcome.metric.empty()) {
    const std::string value = std::isnan(outcome.value) ? "nan" : core::format("{:.6g}", outcome.value);  // never -nan
    line += core::format(" metric={} value={}", outcome.metric, value);
  }
  if (!outcome.checkpoint.empty()) line += " checkpoint=" + core::printable(outcome.checkpoint);
  write_last_line(line);
  return outcome.exit_code;
}

}  // namespace

int run(int argc, const char* const* argv, const Program& program) {
  program.prepare();
  const std::vector<Command> commands = all_commands();
  config::Configuration configuration;
  ChosenCommand chosen;
  std::optional<Context> context;
  const Outcome outcome = outcome_of(
      [&] {
        chosen = choose_command(commands, argc, argv);
        context.emplace(Context{
            argc, argv, {chosen.words, chosen.command, {}, model::model_names(), chosen.mistake}, configuration});
        for (const Command& command : commands) context->line.others.push_back(&command);
        return run_command(*chosen.command, *context, program);
      },
      program, configuration);
  const bool was_help = configuration.flags.help || configuration.flags.help_all || configuration.flags.version;
  if (context && chosen.command->at_end && !was_help) chosen.command->at_end(*context, outcome);
  return end(outcome);
}

}  // namespace stoker::train
