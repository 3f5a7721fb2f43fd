// SPDX-License-Identifier: Apache-2.0
#include "train/launch/start_ranks.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "core/crash/signal_stack.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/group/group.h"
#include "engine/group/rendezvous.h"

namespace stoker::train {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll(20);
constexpr std::chrono::seconds kGrace(2);  // that ranks have to end by themselves once one has failed

struct Child {
  pid_t pid = -1;
  bool has_ended = false, is_stopped = false;
  int status = 0;  ///< status from waitpid
};

int code_of(const Child& child) {
  return WIFEXITED(child.status) ? WEXITSTATUS(child.status) : core::exit_code(core::ErrorKind::peer_lost);
}

/// 0, and clean stops, which all ranks make together.
bool has_failed(const Child& child, int64_t stopped_code) {
  const int code = code_of(child);
  return WIFSIGNALED(child.status) || (code != core::kExitOk && code != core::kExitInterrupted && code != stopped_code);
}

class Children {
 public:
  Children(const char* const* arguments, RankLocation place) : children_(static_cast<size_t>(place.size)) {
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
  Children& operator=(Children&&) = delete;  // not copied, not moved

  void send(int signal_number) const {
    for (const Child& child : children_) {
      if (child.pid > 0 && !child.has_ended) ::kill(child.pid, signal_number);
    }
  }
  /// Who is stopped cannot end by itself. Returns whether there was one.
  bool kill_stopped() const {
    bool has_killed = false;
    for (const Child& child : children_) {
      if (child.is_stopped && !child.has_ended) has_killed |= ::kill(child.pid, SIGKILL) == 0;
    }
    return has_killed;
  }
  void send_to_root(int signal_number) const {
    if (!children_.front().has_ended) ::kill(children_.front().pid, signal_number);
  }
  /// The rank that has ended since the last call; -1: none.
  int next_ended() {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      Child& child = children_[rank];
      int status = 0;
      if (child.has_ended || ::waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != child.pid) continue;
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        child.is_stopped = WIFSTOPPED(status);
        if (child.is_stopped) core::log_warning("rank {} (process {}) is stopped: the others wait", rank, child.pid);
        continue;
      }
      child.status = status;
      child.has_ended = true;
      ++ended_;
      return static_cast<int>(rank);
    }
    return -1;
  }
  bool all_ended() const { return ended_ == children_.size(); }
  const Child& of(int rank) const { return children_[static_cast<size_t>(rank)]; }

 private:
  static pid_t start(const char* const* arguments, const RankLocation& place) {
    std::vector<std::string> variables = variables_of(place);
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
    // Between fork and exec nothing but system calls: other threads may hold any lock.
    const pid_t starter = ::getpid(), pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // holds for the program that follows, too
      if (::getppid() != starter) ::_exit(core::exit_code(core::ErrorKind::peer_lost));  // it is gone already
      core::hold_stop_signals();  // until the program that follows can handle them
      ::setpgid(0, 0);            // Ctrl-C reaches the command, which passes it on once
      ::execve("/proc/self/exe", const_cast<char**>(arguments), all.data());
      ::_exit(127);
    }
    if (pid < 0) {
      throw core::Error(core::ErrorKind::os,
                        core::format("rank {} could not be started: {}", place.rank, std::strerror(errno)));
    }
    return pid;
  }

  std::vector<Child> children_;
  size_t ended_ = 0;
};

/// The signal that stops ranks, which have no terminal, as `name` has stopped the command.
int signal_number_of(const std::string& name) {
  const int number = core::stop_signal_number(name);
  const bool is_known = number == SIGINT || number == SIGUSR1 || core::is_added_stop_signal(number);
  return is_known ? number : SIGTERM;
}

std::string end_of(int rank, const Child& child) {
  if (WIFSIGNALED(child.status)) {
    return core::format("rank {} (process {}) was killed by signal {} ({})", rank, child.pid, WTERMSIG(child.status),
                        ::strsignal(WTERMSIG(child.status)));
  }
  const int code = WEXITSTATUS(child.status);
  if (const core::FaultSignal* const fault = core::fault_of_exit_code(code)) {
    return core::format("rank {} (process {}) crashed with SIG{}", rank, child.pid, fault->name);
  }
  return core::format("rank {} (process {}) ended with exit code {}", rank, child.pid, code);
}

/// A failed rank reports itself; other ranks report one that is gone.
bool is_reported_by_itself(const std::string& cause) { return cause.find(" failed: ") != std::string::npos; }

/// One start of all ranks, up to their end.
class Attempt {
 public:
  Attempt(const StartedRanks& ranks, const RankLocation& place, engine::Rendezvous& rendezvous)
      : ranks_(ranks), rendezvous_(rendezvous), children_(ranks.arguments, place) {}

  RanksEnd run() {
    while (!children_.all_ended()) {
      pass_signals_on();
      if (deadline_ && Clock::now() > *deadline_) {
        has_killed_ = true;
        children_.send(SIGKILL);
        deadline_.reset();
      }
      const int rank = children_.next_ended();
      if (rank >= 0)
        note_end(rank);
      else
        std::this_thread::sleep_for(kPoll);
    }
    if (end_.has_failed && end_.exit_code == core::exit_code(core::ErrorKind::peer_lost)) {
      const std::string cause = rendezvous_.cause();
      core::log_error("{}", killed_.empty() || is_reported_by_itself(cause) ? cause : killed_);
    }
    return end_;
  }

 private:
  void pass_signals_on() {
    if (core::stop_requested() && !stop_sent_) {
      children_.send(signal_number_of(core::stop_signal_name()));
      stop_sent_ = true;
    }
    if (core::take_save_request()) children_.send_to_root(SIGUSR2);
  }

  void note_end(int rank) {
    const Child& child = children_.of(rank);
    const int code = code_of(child), lost = core::exit_code(core::ErrorKind::peer_lost);
    const std::string signal =
        code == lost && WIFEXITED(child.status) ? engine::stop_signal_in(rendezvous_.cause()) : "";
    if (!signal.empty()) {  // it was left by one that heard of a stop before it did
      if (rank == 0 && !end_.has_failed) end_ = {static_cast<int>(ranks_.stopped_code), false, signal, 0};
      return;
    }
    if (!has_failed(child, ranks_.stopped_code)) {
      if (rank == 0 && !end_.has_failed) end_.exit_code = code;
      return;
    }
    const bool is_first = !end_.has_failed, is_explained = is_reported_by_itself(rendezvous_.cause());
    // Other ranks may have reported before that it is gone.
    if (WIFSIGNALED(child.status) && killed_.empty() && !has_killed_) killed_ = end_of(rank, child);
    // A rank that fails reports the cause to all and to the user, one that crashes to the user alone; for one that was
    // killed it is reported here.
    if (is_first && !is_explained) {
      rendezvous_.publish_cause(end_of(rank, child));
      if (code != lost && !core::fault_of_exit_code(code)) core::log_error("{}", end_of(rank, child));
    }
    if (is_first) {
      deadline_ = Clock::now() + kGrace;
      has_killed_ |= children_.kill_stopped();
    }
    if (is_first || (end_.exit_code == lost && WIFEXITED(child.status))) end_ = {code, /*has_failed=*/true, "", rank};
  }

  const StartedRanks& ranks_;
  engine::Rendezvous& rendezvous_;
  Children children_;
  RanksEnd end_;
  std::string killed_;  ///< the first rank that a signal has killed which was not sent here, as a sentence
  bool stop_sent_ = false, has_killed_ = false;
  std::optional<Clock::time_point> deadline_;  ///< time at which those that are left are killed
};

}  // namespace

RanksEnd run_ranks(const StartedRanks& ranks) {
  RankLocation place;
  place.starter = "train";
  place.size = place.local_size = ranks.count;
  for (;; ++place.attempt) {
    place.job = core::format("train-{}-{}", ::getpid(), Clock::now().time_since_epoch().count());
    engine::RendezvousFolder rendezvous(place.job, place.size, place.size, /*seconds=*/60);
    const RanksEnd end = Attempt(ranks, place, rendezvous).run();
    const bool is_lost = end.has_failed && (end.exit_code == core::exit_code(core::ErrorKind::peer_lost) ||
                                            core::fault_of_exit_code(end.exit_code) != nullptr);
    if (!is_lost || place.attempt == ranks.restarts || core::stop_requested()) return end;
    core::log_warning("starting all ranks again from the newest checkpoint ({} of {} restarts)", place.attempt + 1,
                      ranks.restarts);
  }
}

}  // namespace stoker::train
