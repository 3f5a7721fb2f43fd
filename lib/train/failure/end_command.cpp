// SPDX-License-Identifier: Apache-2.0
#include "train/failure/end_command.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <iterator>
#include <vector>

#include "core/crash/signal_text.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/child_process.h"
#include "train/failure/rank_location.h"

namespace stoker::train {
namespace {

/// For a command that started the ranks of a run: only they have more.
std::string reason_of(const Outcome& outcome) {
  if (!outcome.reason.empty()) return outcome.reason;
  return outcome.exit_code == core::kExitOk ? "finished" : "stopped";
}

bool ends_the_run(const config::DeviceOptions& device) {
  try {
    const auto place = rank_location(process_environment, {static_cast<int>(device.devices.count), device.listen});
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

namespace {

/// Known when it happens: the first three.
constexpr const char* kNames[] = {"STOKER_EXIT_CODE=", "STOKER_REASON=",  "STOKER_RUN_DIR=",   "STOKER_METRIC=",
                                  "STOKER_BEST=",      "STOKER_UPDATES=", "STOKER_CHECKPOINT="};
constexpr size_t kKnownLater = 3;

struct Prepared {
  std::string command;
  std::vector<std::string> texts;  ///< variables of the environment
  std::vector<char*> variables;    ///< those, and what is known later
  core::SignalText<PATH_MAX + 32> later[kKnownLater];
};
std::atomic<Prepared*> g_prepared{nullptr};

/// For a process that shares its memory with this one until it is another program.
[[noreturn]] void become(const Prepared& prepared) {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (const int number : {SIGHUP, SIGPIPE}) ::sigaction(number, &usual, nullptr);  // may be ignored
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const char* const words[] = {"/bin/sh", "-c", prepared.command.c_str(), nullptr};
  ::execve(words[0], const_cast<char* const*>(words), prepared.variables.data());
  ::_exit(127);
}

}  // namespace

void prepare_crash_command(const std::string& command) {
  auto* const prepared = new Prepared;  // for as long as the process lives
  prepared->command = command;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool is_ours = false;
    for (const char* const name : kNames) is_ours |= std::strncmp(*entry, name, std::strlen(name)) == 0;
    if (!is_ours) prepared->texts.emplace_back(*entry);
  }
  for (size_t i = kKnownLater; i < std::size(kNames); ++i) prepared->texts.emplace_back(kNames[i]);
  for (std::string& text : prepared->texts) prepared->variables.push_back(text.data());
  for (auto& text : prepared->later) prepared->variables.push_back(const_cast<char*>(text.text()));
  prepared->variables.push_back(nullptr);
  g_prepared = prepared;
}

void run_crash_command(const char* exit_code, const char* reason, const char* run_dir) {
  Prepared* const prepared = g_prepared.exchange(nullptr);
  if (prepared == nullptr) return;
  const char* const values[kKnownLater] = {exit_code, reason, run_dir};
  for (size_t i = 0; i < kKnownLater; ++i) prepared->later[i].add(kNames[i]).add(values[i]);
  const pid_t pid = ::vfork();  // fork() would run what libraries have registered for it
  if (pid == 0) become(*prepared);
  while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace stoker::train
