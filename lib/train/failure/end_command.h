// SPDX-License-Identifier: Apache-2.0
// --on-end: a shell command that gets the outcome of a run.
#pragma once

#include <string>

#include "config/options.h"
#include "train/outcome.h"

namespace stoker::train {

/// From now on the same happens where this process crashes, with the values that are known then. Nothing for an empty
/// command, and in a rank that does not end the run.
void prepare_end_command(const std::string& command, const config::Options& options);
/// Runs the command where this process is the one that ends a training run: not one of the ranks that it started, nor a
/// rank above 0. A command that fails is a warning; it changes no exit code.
void run_end_command(const std::string& command, const config::Options& options, const std::string& run_dir,
                     const Outcome& outcome);

// `--on-end` of a process that crashes: made ready before, since who handles a crash can allocate nothing.

/// From now on run_crash_command() runs `command` by the shell.
void prepare_crash_command(const std::string& command);

/// In a signal handler: runs it with these in its environment, and waits for it. Nothing where none is prepared.
void run_crash_command(const char* exit_code, const char* reason, const char* run_dir);

}  // namespace stoker::train
