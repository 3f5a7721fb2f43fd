// SPDX-License-Identifier: Apache-2.0
// The machine-readable last line of the program, also where a process must end without running destructors.
#pragma once

#include <exception>
#include <string>

namespace stoker::app {

/// Writes `line` to stderr, behind everything in the log.
void write_last_line(const std::string& line);

/// Whether a device or its driver has failed for good, memory aside: every further call to it fails, too.
bool is_device_failure(const std::exception& error);

/// Ends the process where `error` is_device_failure(): says so, writes the last line and leaves with 71 without running
/// a destructor, each of which could call the device again and throw. Else returns.
void leave_if_device_failed(const std::exception& error);

/// From now on std::terminate() (an exception out of a destructor, say) writes a last line and leaves with 71 after a
/// device failure and with 70 otherwise, in place of SIGABRT.
void install_terminate_handler();

}  // namespace stoker::app
