// SPDX-License-Identifier: Apache-2.0
#include "core/system/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"

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

/// Signals that this process ignores or handles must not be inherited.
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
  UsualSignals& operator=(UsualSignals&&) = delete;  // not copied, not moved

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

int run_this_program(const std::vector<std::string>& words) {
  constexpr timespec kPoll = {0, 20'000'000};
  std::vector<std::string> all = {"train"};
  all.insert(all.end(), words.begin(), words.end());
  const std::vector<char*> arguments = pointers_to(all);
  // Between fork and exec nothing but system calls: other threads may hold any lock.
  const pid_t starter = ::getpid(), pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // holds for the program that follows, too
    if (::getppid() != starter) ::_exit(exit_code(ErrorKind::os));
    hold_stop_signals();  // until the program that follows can handle them
    ::setpgid(0, 0);      // Ctrl-C reaches this process, which passes it on once
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(127);
  }
  if (pid < 0) throw errno_error(errno, "start", "/proc/self/exe", ErrorKind::os);
  bool is_stop_sent = false;
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) throw errno_error(errno, "wait for", "/proc/self/exe", ErrorKind::os);
    if (ended == pid) break;
    if (stop_requested() && !is_stop_sent) is_stop_sent = ::kill(pid, SIGTERM) == 0;
    if (take_save_request()) ::kill(pid, SIGUSR2);
    ::nanosleep(&kPoll, nullptr);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

namespace {

/// A file in memory that holds `text`, at its start. A pipe would have to be written to while the child reads.
int file_of(const std::string& text) {
  const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0) throw errno_error(errno, "make", "a file in memory", ErrorKind::os);
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      ::close(file);
      throw errno_error(errno, "write", "a file in memory", ErrorKind::os);
    }
    done += static_cast<size_t>(count);
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

}  // namespace

PipedChild::PipedChild(const ChildCommand& command, const std::string& input) {
  const int input_file = file_of(input);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    ::close(input_file);
    throw errno_error(errno, "make", "a pipe", ErrorKind::os);
  }
  output_ = ends[0];
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, input_file, 0);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  const int failure = spawn(command, &files, pid_);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(input_file);
  ::close(ends[1]);
  if (failure == 0) return;
  pid_ = -1;
  ::close(output_);
  throw Error(ErrorKind::os, format("cannot start {}: {}", printable(command.words.at(0)), std::strerror(failure)));
}

PipedChild::~PipedChild() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  ::close(output_);
}

std::optional<std::string> PipedChild::read_line(double patience_seconds) {
  constexpr int kLookEvery = 200;  // milliseconds, after a signal to stop
  // Waits are counted, not the time: a process that was suspended is not a reason to lose patience.
  int64_t waits_left = static_cast<int64_t>(patience_seconds * 1000 / kLookEvery) + 1;
  while (true) {
    const size_t end = pending_.find('\n');
    if (end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    throw_if_stopped();
    struct pollfd waiting = {output_, POLLIN, 0};
    if (::poll(&waiting, 1, kLookEvery) <= 0) {
      if (--waits_left > 0) continue;
      hangs_ = true;
      return std::nullopt;
    }
    char bytes[4096];
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    if (count > 0) pending_.append(bytes, static_cast<size_t>(count));
    if (count == 0) {
      throw_if_stopped();  // Ctrl-C reaches the child, too
      return std::nullopt;
    }
  }
}

int PipedChild::wait() {
  if (hangs_) ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno == EINTR) continue;
    pid_ = -1;  // somebody else has waited for it
    return -1;
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace stoker::core
