// SPDX-License-Identifier: Apache-2.0
#include "app/launch/start_ranks.h"

#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/group/c10d/join.h"

namespace stoker::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll(20);
constexpr std::chrono::seconds kGrace(4);  // that ranks have to end by themselves once one has failed

struct Child {
  pid_t pid = -1;
  bool has_ended = false;
  int status = 0;  ///< of waitpid
};

int code_of(const Child& child) {
  return WIFEXITED(child.status) ? WEXITSTATUS(child.status) : core::exit_code(core::ErrorKind::peer_lost);
}

/// 0, and stops in good order, which all ranks make together.
bool has_failed(const Child& child) {
  const int code = code_of(child);
  return WIFSIGNALED(child.status) ||
         (code != core::kExitOk && (code >= 64 && code != core::kExitStopped && code <= 82));
}

class Children {
 public:
  Children(const char* const* arguments, RankPlace place) : children_(static_cast<size_t>(place.size)) {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      place.rank = place.local_rank = static_cast<int>(rank);
      children_[rank].pid = start(arguments, place);
    }
  }
  ~Children() {
    send(SIGKILL);
    for (const Child& child : children_) {
      if (child.pid > 0 && !child.has_ended) ::waitpid(child.pid, nullptr, 0);
    }
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void send(int signal_number) const {
    for (const Child& child : children_) {
      if (child.pid > 0 && !child.has_ended) ::kill(child.pid, signal_number);
    }
  }
  void send_to_root(int signal_number) const {
    if (!children_.front().has_ended) ::kill(children_.front().pid, signal_number);
  }
  /// The rank that has ended since the last call; -1: none.
  int next_ended() {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      Child& child = children_[rank];
      if (child.has_ended || ::waitpid(child.pid, &child.status, WNOHANG) != child.pid) continue;
      child.has_ended = true;
      ++ended_;
      return static_cast<int>(rank);
    }
    return -1;
  }
  bool all_ended() const { return ended_ == children_.size(); }
  const Child& of(int rank) const { return children_[static_cast<size_t>(rank)]; }

 private:
  static pid_t start(const char* const* arguments, const RankPlace& place) {
    std::vector<std::string> variables = variables_of(place);
    variables.push_back(core::format("{}={}", kStarterVariable, ::getpid()));
    std::vector<char*> all;
    for (std::string& variable : variables) all.push_back(variable.data());
    for (char** entry = environ; *entry != nullptr; ++entry) {
      bool is_ours = false;
      for (const std::string& variable : variables) {
        is_ours |= std::strncmp(*entry, variable.c_str(), variable.find('=') + 1) == 0;
      }
      if (!is_ours) all.push_back(*entry);
    }
    all.push_back(nullptr);
    // A process group of its own: Ctrl-C reaches the command, which passes it on once.
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    pid_t pid = -1;
    const int error =
        ::posix_spawn(&pid, "/proc/self/exe", nullptr, &attributes, const_cast<char**>(arguments), all.data());
    ::posix_spawnattr_destroy(&attributes);
    if (error != 0) {
      throw core::Error(core::ErrorKind::os,
                        core::format("rank {} could not be started: {}", place.rank, std::strerror(error)));
    }
    return pid;
  }

  std::vector<Child> children_;
  size_t ended_ = 0;
};

int signal_number_of(const std::string& name) {
  return name == "INT" ? SIGINT : name == "USR1" ? SIGUSR1 : name == "HUP" ? SIGTERM : SIGTERM;
}

std::string death_of(int rank, const Child& child) {
  return core::format("rank {} (process {}) was killed by signal {} ({})", rank, child.pid, WTERMSIG(child.status),
                      ::strsignal(WTERMSIG(child.status)));
}

}  // namespace

RanksEnd run_ranks(const char* const* arguments, int count) {
  const std::unique_ptr<engine::MeetingPoint> point = engine::open_meeting_point();
  RankPlace place;
  place.size = place.local_size = count;
  place.port = point->port();
  Children children(arguments, place);
  RanksEnd end;
  const int lost = core::exit_code(core::ErrorKind::peer_lost);
  bool stop_sent = false;
  std::optional<Clock::time_point> deadline;
  while (!children.all_ended()) {
    if (core::stop_requested() && !stop_sent) {
      children.send(signal_number_of(core::stop_signal_name()));
      stop_sent = true;
    }
    if (core::take_save_request()) children.send_to_root(SIGUSR2);
    if (deadline && Clock::now() > *deadline) {
      children.send(SIGKILL);
      deadline.reset();
    }
    const int rank = children.next_ended();
    if (rank < 0) {
      std::this_thread::sleep_for(kPoll);
      continue;
    }
    const Child& child = children.of(rank);
    const int code = code_of(child);
    if (!has_failed(child)) {
      if (rank == 0 && end.exit_code == 0) end.exit_code = code;
      continue;
    }
    const bool is_first = end.exit_code == 0 || end.exit_code == core::kExitStopped;
    if (WIFSIGNALED(child.status) && is_first) {
      point->say(death_of(rank, child));
      core::log_error("{}", death_of(rank, child));
    }
    if (is_first || (end.exit_code == lost && code != lost && WIFEXITED(child.status))) {
      end = {code, /*is_told=*/false};
    }
    if (!deadline && is_first) deadline = Clock::now() + kGrace;
  }
  return end;
}

void end_with_starter() {
  const std::string starter = process_environment(kStarterVariable);
  if (starter.empty()) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != std::atoi(starter.c_str()))
    ::_exit(core::exit_code(core::ErrorKind::peer_lost));  // it is gone already
}

}  // namespace stoker::app
