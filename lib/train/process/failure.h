// SPDX-License-Identifier: Apache-2.0
// Whatever ends a command, as the one exception that users read.
#pragma once

#include <exception>

#include "config/options.h"
#include "core/error.h"

namespace stoker::train {

/// A core::Error stays as it is; others are put into words, with an exit code and what to do next. `given`: the options
/// of the command, for facts on the device.
core::Error error_of(const std::exception& exception, const config::Options& given);

/// The words for a device or driver that failed for good. Calls no device.
core::Error device_failure(const std::exception& error);

/// Whether a device or its driver has failed for good, memory aside: every further call to it fails, too.
bool is_device_failure(const std::exception& error);

/// Ends the process where `error` is_device_failure(): logs the error, writes the last line and leaves with 71 without
/// running a destructor, each of which could call the device again and throw. Else returns.
void exit_on_device_failure(const std::exception& error);

/// Returns the result of `work`. A device that fails in it is left as it is, before tensors and feeds are destroyed.
template <typename Work>
auto run_or_exit_on_device_failure(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    exit_on_device_failure(error);
    throw;
  }
}

/// From now on std::terminate() (such as an exception out of a destructor) writes a last line and leaves with 71 after
/// a device failure and with 70 otherwise, in place of SIGABRT.
void install_terminate_handler();

// The setup of a process before it does anything: signals, file descriptors, memory arenas, library warnings.

/// Installs stop signals, re-opens closed standard descriptors on /dev/null, raises the limit of open files, and
/// sends LibTorch's warnings to our log.
void prepare_process();

}  // namespace stoker::train
