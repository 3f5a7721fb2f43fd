// SPDX-License-Identifier: Apache-2.0
// Another program, started and waited for.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stoker::core {

struct ChildCommand {
  std::vector<std::string> words;  ///< path of the program, or its name to be looked up in PATH, and its arguments
  std::vector<std::pair<std::string, std::string>> variables = {};  ///< over this process's environment
};

/// Runs it with this process's standard streams and with the usual actions of signals, and returns its exit code, or
/// 128 + the signal that ended it. A signal to this process does not end the wait. Throws Error{os} where it cannot be
/// started; a program that is not there may be reported as exit code 127.
int run_child(const ChildCommand& command);

/// Runs this very program with these words, its standard output where errors go. A stop and a save that are requested
/// of this process are passed on to it, and it does not outlive this process. Returns and throws as run_child(). For
/// the main thread: it is with that thread that the child ends.
int run_this_program(const std::vector<std::string>& words);

// How other programs are started: their environment and the signals that they inherit.

/// Starts `command` with the usual actions of signals. `files` may be null. Returns 0, or errno.
int spawn(const ChildCommand& command, const posix_spawn_file_actions_t* files, pid_t& pid);

// Another program whose lines are read while it runs, and which may crash or hang.

class PipedChild {
 public:
  /// Starts it with `input` as its standard input and nothing where its errors go. Throws Error{os} where it cannot be
  /// started.
  PipedChild(const ChildCommand& command, const std::string& input);
  /// Ends it where it still runs.
  ~PipedChild();
  PipedChild& operator=(PipedChild&&) = delete;  // not copied, not moved

  /// The next line of its standard output, without its end. Nothing at the end of the output, and where none came for
  /// `patience_seconds`: hangs() distinguishes the two. Throws StopRequested.
  std::optional<std::string> read_line(double patience_seconds);
  bool hangs() const { return hangs_; }
  /// Waits for its end: its exit code, or 128 + the signal that ended it; -1 where that is lost. One that hangs is
  /// ended.
  int wait();

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  std::string pending_;
  bool hangs_ = false;
};

}  // namespace stoker::core
