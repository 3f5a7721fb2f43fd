// SPDX-License-Identifier: Apache-2.0
// The program: which command runs, and how every end of it becomes an exit code and a last line.
#pragma once

#include <exception>

#include "config/config.h"
#include "core/error.h"

namespace stoker::train {

/// The differences between `train`, which is linked without LibTorch, and `stoker-train`.
struct Program {
  void (*prepare)();                                ///< the process
  void (*begin)(const config::CommonFlags& flags);  ///< before a command runs
  core::Error (*error_of)(const std::exception& exception, const config::Options& given);
};

/// Runs the command line and returns the exit code of docs/reference/exit-codes.md. Never throws.
///
/// A command that this program does not have is run by stoker-train, beside it or in ../libexec/stoker: it takes the
/// place of this process once the command line is known to be right.
int run(int argc, const char* const* argv, const Program& program);

}  // namespace stoker::train
