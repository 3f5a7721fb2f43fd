// SPDX-License-Identifier: Apache-2.0
// How other programs are started: their environment and the signals that they inherit.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include "core/system/child_process.h"

namespace stoker::core {

/// Starts `command` with the usual actions of signals. `files` may be null. Returns 0, or errno.
int spawn(const ChildCommand& command, const posix_spawn_file_actions_t* files, pid_t& pid);

}  // namespace stoker::core
