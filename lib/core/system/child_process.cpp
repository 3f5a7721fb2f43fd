// SPDX-License-Identifier: Apache-2.0
#include "core/system/child_process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/format.h"
#include "core/system/child_environment.h"

namespace stoker::core {
namespace {

/// "NAME=value" of this process, less those that are replaced, and those.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool is_replaced = false;
    for (const auto& [name, value] : variables) {
      is_replaced = is_replaced || std::strncmp(*entry, (name + "=").c_str(), name.size() + 1) == 0;
    }
    if (!is_replaced) all.emplace_back(*entry);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// What this process ignores or handles, the other one shall not inherit.
class UsualSignals {
 public:
  UsualSignals() {
    ::posix_spawnattr_init(&attributes_);
    sigset_t usual, none;
    ::sigemptyset(&none);
    ::sigemptyset(&usual);
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGCHLD}) {
      ::sigaddset(&usual, signal);
    }
    ::posix_spawnattr_setsigdefault(&attributes_, &usual);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~UsualSignals() { ::posix_spawnattr_destroy(&attributes_); }
  UsualSignals(const UsualSignals&) = delete;
  UsualSignals& operator=(const UsualSignals&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

int spawn(const ChildCommand& command, const posix_spawn_file_actions_t* files, pid_t& pid) {
  std::vector<std::string> words = command.words, environment = environment_with(command.variables);
  const UsualSignals signals;
  return ::posix_spawnp(&pid, words.at(0).c_str(), files, signals.get(), pointers_to(words).data(),
                        pointers_to(environment).data());
}

int run_child(const ChildCommand& command) {
  pid_t pid = -1;
  const int failure = spawn(command, nullptr, pid);
  if (failure != 0) {
    throw Error(ErrorKind::os, format("cannot start {}: {}", printable(command.words.at(0)), std::strerror(failure)));
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw errno_error(errno, "wait for", command.words[0], ErrorKind::os);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace stoker::core
