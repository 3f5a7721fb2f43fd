// SPDX-License-Identifier: Apache-2.0
// Some seconds of training by several processes of this machine, for `train plan`: each is this program again.
#pragma once

#include <optional>

#include "commands/command.h"
#include "plan/device_plan.h"
#include "plan/epoch_estimate.h"

namespace stoker::train {

/// Trains on the devices of `plan`, in the precision and the layout of `options`. Nothing where that could
/// not be done; a warning then has the reason. Throws core::StopRequested.
std::optional<plan::EpochEstimate> try_devices(const Context& context, const config::ResolvedOptions& options,
                                               const plan::DevicePlan& plan);

/// In a process that try_devices() started: one rank of the trial.
Outcome measure_as_rank(const config::Configuration& configuration, const std::string& report);

}  // namespace stoker::train
