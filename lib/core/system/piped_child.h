// SPDX-License-Identifier: Apache-2.0
// Another program whose lines are read while it runs, and which may crash or hang.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/system/child_process.h"

namespace stoker::core {

class PipedChild {
 public:
  /// Starts it with `input` as its standard input and nothing where its errors go. Throws Error{os} where it cannot be
  /// started.
  PipedChild(const ChildCommand& command, const std::string& input);
  /// Ends it where it still runs.
  ~PipedChild();
  PipedChild(const PipedChild&) = delete;
  PipedChild& operator=(const PipedChild&) = delete;

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
