// SPDX-License-Identifier: Apache-2.0
// `--on-end` of a process that crashes: made ready before, since who handles a crash can allocate nothing.
#pragma once

#include <string>

namespace stoker::train {

/// From now on run_crash_command() runs `command` by the shell.
void prepare_crash_command(const std::string& command);

/// In a signal handler: runs it with these in its environment, and waits for it. Nothing where none is prepared.
void run_crash_command(const char* exit_code, const char* reason, const char* run_dir);

}  // namespace stoker::train
