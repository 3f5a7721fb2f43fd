// SPDX-License-Identifier: Apache-2.0
// --on-end: a command that learns how a run ended.
#pragma once

#include "app/app.h"

namespace stoker::app {

/// From now on the same happens where this process crashes, as far as what is told is known then.
void prepare_end_command(const config::Configuration& configuration);
/// Runs the command of --on-end where this process is the one that ends a training run: not one of the ranks that it
/// started, nor a rank above 0. A command that fails is a warning; it changes no exit code.
void run_end_command(const Invocation& invocation, const Outcome& outcome);

}  // namespace stoker::app
