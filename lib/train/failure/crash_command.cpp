// SPDX-License-Identifier: Apache-2.0
#include "train/failure/crash_command.h"

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

namespace stoker::train {
namespace {

/// Known when it happens: the first three.
constexpr const char* kNames[] = {"STOKER_EXIT_CODE=", "STOKER_REASON=",  "STOKER_RUN_DIR=",   "STOKER_METRIC=",
                                  "STOKER_BEST=",      "STOKER_UPDATES=", "STOKER_CHECKPOINT="};
constexpr size_t kKnownLater = 3;

struct Prepared {
  std::string command;
  std::vector<std::string> texts;  ///< of the environment
  std::vector<char*> variables;    ///< those, and what is known later
  core::SignalText<PATH_MAX + 32> later[kKnownLater];
};
std::atomic<Prepared*> g_prepared{nullptr};

/// Of a process that shares its memory with this one until it is another program.
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
