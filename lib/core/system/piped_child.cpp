// SPDX-License-Identifier: Apache-2.0
#include "core/system/piped_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/format.h"
#include "core/system/child_environment.h"
#include "core/system/stop_signal.h"

namespace stoker::core {
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
  // Waits are counted, not the time: a process that was suspended is no reason to lose patience.
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
