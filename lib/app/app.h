// SPDX-License-Identifier: Apache-2.0
// The program: which verb runs, and how every end of it becomes an exit code and a last line.
#pragma once

#include <string>

#include "config/config.h"

namespace stoker::app {

/// Runs the command line and returns the exit code of docs/exit-codes.md. Never throws.
int run(int argc, const char* const* argv);

/// How a verb ended, for the machine-readable last line on stderr.
struct Outcome {
  int exit_code = 0;
  std::string reason{};  ///< "finished", "already-finished", "signal:TERM", ...
  int64_t updates = -1;  ///< -1: not a training run
  std::string checkpoint{};
  std::string metric{};  ///< what `value` is of: "top1"; empty: nothing was evaluated
  double value = 0;      ///< of a run: of its best epoch
  int rank = -1;         ///< of those that were started here: which one crashed; -1: none did
};

/// What a verb is given. `arguments` are those of main, for verbs that parse them again over a checkpoint's
/// configuration.
struct Invocation {
  int argc = 0;
  const char* const* argv = nullptr;
  config::Configuration& configuration;
};

Outcome train(const Invocation& invocation);
Outcome eval(const Invocation& invocation);
Outcome predict(const Invocation& invocation);
Outcome bench(const Invocation& invocation);
Outcome pack(const Invocation& invocation);
Outcome check(const Invocation& invocation);
Outcome plan(const Invocation& invocation);
Outcome preview(const Invocation& invocation);
Outcome report(const Invocation& invocation);
Outcome export_network(const Invocation& invocation);
Outcome import_weights(const Invocation& invocation);
Outcome audit(const Invocation& invocation);
Outcome list(const Invocation& invocation);
Outcome watch(const Invocation& invocation);
Outcome replay(const Invocation& invocation);
Outcome diff(const Invocation& invocation);
Outcome blame(const Invocation& invocation);
Outcome verify(const Invocation& invocation);

}  // namespace stoker::app
