// SPDX-License-Identifier: Apache-2.0
// Whatever ends a verb, as the one exception that users read.
#pragma once

#include <exception>

#include "config/options.h"
#include "core/error.h"

namespace stoker::train {

/// A core::Error stays as it is; others are put into words, with an exit code and what to do next. `given`: the options
/// of the verb, for what it says of the device.
core::Error error_of(const std::exception& exception, const config::Options& given);

/// The words for a device or driver that failed for good. Calls no device.
core::Error device_failure(const std::exception& error);

}  // namespace stoker::train
