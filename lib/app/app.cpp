// SPDX-License-Identifier: Apache-2.0
#include "app/app.h"

#include <c10/util/Exception.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <system_error>

#include "app/process.h"
#include "config/resolution.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "engine/device/device.h"
#include "engine/device/out_of_memory.h"

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

core::LogLevel console_level(const config::LogOptions& options) {
  if (options.quiet) return core::LogLevel::warning;
  if (options.log_level == "debug") return core::LogLevel::debug;
  if (options.log_level == "warning") return core::LogLevel::warning;
  if (options.log_level == "error") return core::LogLevel::error;
  return core::LogLevel::info;
}

Outcome dispatch(const Invocation& invocation) {
  config::Configuration& configuration = invocation.configuration;
  const config::CommandLine& command = configuration.command;
  if (command.help || command.version || command.help_markdown) {
    write_stdout(command.help            ? config::render_help(configuration.table, command.verb)
                 : command.help_markdown ? config::render_markdown(configuration.table)
                                         : "stoker train " STOKER_VERSION "\n");
    return {core::kExitOk, ""};
  }
  core::set_console_level(console_level(configuration.options.log));
  if (!configuration.options.log.log_file.empty()) core::open_log_file(configuration.options.log.log_file);
  if (command.verb == "eval") return eval(invocation);
  if (command.verb == "predict") return predict(invocation);
  if (command.verb == "bench") return bench(invocation);
  if (command.verb == "pack") return pack(invocation);
  if (command.verb == "check") return check(invocation);
  if (command.verb == "plan") return plan(invocation);
  if (command.verb == "preview") return preview(invocation);
  if (command.verb == "report") return report(invocation);
  if (command.verb == "audit") return audit(invocation);
  return train(invocation);
}

Outcome failed(const Error& error) {
  core::log_error("{}{}{}", error.what(), error.hint().empty() ? "" : "\nhint: ", error.hint());
  if (error.kind() == ErrorKind::bug) core::log_error("this is a bug: please report it with the lines above");
  return {core::exit_code(error.kind()), "error"};
}

/// The device of a verb; "cpu" where none can be had.
std::string device_of(const config::Options& given) {
  config::Facts facts;
  facts.machine.accelerators = engine::list_accelerators();
  try {
    return config::resolve(given, facts).options.device.device;
  } catch (const Error&) {
    return "cpu";
  }
}

/// "this process held 3.1 GB at most, 0.2 GB are free", and the same of its device.
std::string memory_text(const config::Options& given) {
  const auto size_text = [](int64_t bytes) { return core::bytes_text(static_cast<double>(bytes)); };
  std::string text = core::format("this process held {} at most, {} are free",
                                  size_text(core::read_process_memory().peak_resident_bytes),
                                  size_text(core::read_machine_facts().ram_available_bytes));
  const std::string device = device_of(given);
  if (device.rfind("cuda:", 0) != 0) return text;
  const engine::DeviceMemory memory = engine::device_memory(torch::Device(device));
  return text + core::format("; on {} it held {} at most, {} of {} are free", device, size_text(memory.peak_bytes),
                             size_text(memory.free_bytes), size_text(memory.total_bytes));
}

Error out_of_memory(const std::string& cause, const config::Options& given) {
  return Error(
      ErrorKind::out_of_memory, core::format("out of memory: {}; {}", cause, memory_text(given)),
      "train plan with the same options says what fits; --auto-micro-batch computes smaller pieces by itself, or "
      "use a smaller --batch-size with more --accumulation-steps: the same update");
}

Error translate_torch_error(const c10::Error& error, const config::Options& given) {
  const std::string text = engine::short_text_of(error);
  core::log_debug("{}", error.what());
  if (engine::is_out_of_memory(error)) return out_of_memory(text, given);
  if (text.find("CUDA error") != std::string::npos || text.find("cuDNN error") != std::string::npos) {
    return Error(ErrorKind::os, "the device failed: " + text, "run the same command again: it resumes");
  }
  return Error(ErrorKind::bug, text);
}

/// Threads that cannot be made, and what std::filesystem throws.
Error translate_system_error(const std::system_error& error) {
  if (error.code() == std::errc::resource_unavailable_try_again) {
    return Error(ErrorKind::os, core::format("a thread could not be started: {}", error.what()),
                 "raise the limit on processes (ulimit -u, or the pids limit of the container), or use fewer --threads "
                 "and --num-workers");
  }
  const auto* const about_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (about_file == nullptr) return Error(ErrorKind::os, error.what());
  return core::errno_error(error.code().value(), "use", core::printable(about_file->path1().string()), ErrorKind::io);
}

/// Turns whatever ends a verb into an outcome.
Outcome run_guarded(const Invocation& invocation) {
  try {
    config::parse_command_line(invocation.argc, invocation.argv, invocation.configuration);
    return dispatch(invocation);
  } catch (const core::StopRequested&) {  // before anything was trained: nothing to save
    const bool interrupted = core::stop_signal_name() == "INT";
    const int stopped = static_cast<int>(invocation.configuration.options.run.stop_exit_code);
    return {interrupted ? core::kExitInterrupted : stopped, "signal:" + core::stop_signal_name()};
  } catch (const Error& error) {
    return failed(error);
  } catch (const c10::Error& error) {
    return failed(translate_torch_error(error, invocation.configuration.options));
  } catch (const std::bad_alloc&) {
    return failed(out_of_memory("of the host", invocation.configuration.options));
  } catch (const std::system_error& error) {
    return failed(translate_system_error(error));
  } catch (const std::exception& error) {
    return failed(Error(ErrorKind::bug, error.what()));
  }
}

}  // namespace

int run(int argc, const char* const* argv) {
  prepare_process();
  config::Configuration configuration;
  const Outcome outcome = run_guarded({argc, argv, configuration});
  core::flush_log();
  std::fflush(stdout);
  if (outcome.reason.empty()) return outcome.exit_code;  // help and the like: nothing to report
  std::string line = core::format("train: exit={} reason={}", outcome.exit_code, outcome.reason);
  if (outcome.updates >= 0) line += core::format(" update={}", outcome.updates);
  if (!outcome.checkpoint.empty()) line += " checkpoint=" + core::printable(outcome.checkpoint);
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
  return outcome.exit_code;
}

}  // namespace stoker::app
