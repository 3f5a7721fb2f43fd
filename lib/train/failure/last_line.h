// SPDX-License-Identifier: Apache-2.0
// The machine-readable last line of the program, also where a process must end without running destructors.
#pragma once

#include <string>

#include "core/error.h"

namespace stoker::train {

/// Writes `line` to stderr, behind everything in the log.
void write_last_line(const std::string& line);
/// Logs the error, writes the last line and ends the process without running a destructor.
[[noreturn]] void leave(const core::Error& error);

/// What the standard library throws, as the one exception that users read; a core::Error stays as it is.
core::Error plain_error_of(const std::exception& exception);

}  // namespace stoker::train
