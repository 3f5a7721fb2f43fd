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

}  // namespace stoker::train
