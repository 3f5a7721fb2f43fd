// SPDX-License-Identifier: Apache-2.0
// One run on different numbers of devices: what `train plan --devices` compares.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "commands/command.h"
#include "commands/plan/plan.h"
#include "plan/device_plan.h"
#include "train/setup/settings.h"

namespace stoker::train {

/// Numbers of devices to compare, from the command line.
struct DeviceQuestion {
  std::vector<int64_t> devices;  ///< at least one number
  bool replicas_given = false;   ///< else there are as many as devices
  bool is_requested = false;     ///< the command line names devices
};
/// Throws Error{usage}.
DeviceQuestion device_question(const PlanFlags& flags, const config::Configuration& configuration);

/// The plan of a run on `devices` devices. Throws Error{config} where ranks cannot share them.
int64_t replicas_on(const config::Configuration& configuration, const DeviceQuestion& question, int64_t devices);

/// The plan of the run on each number of devices, without times. `settings` has the facts on data and network;
/// `measured` is the plan of one process, and `budget` what is free while nothing else runs. Throws as
/// config::resolve().
std::vector<plan::DevicePlan> plan_devices(const DeviceQuestion& question, const config::Configuration& configuration,
                                           const Settings& settings, const plan::PlanInputs& measured,
                                           const plan::MemoryBudget& budget);

// Some seconds of training by several processes of this machine, for `train plan`: each is this program again.

/// Trains on the devices of `plan`, in the precision and the layout of `options`. Nothing where that could
/// not be done; a warning then has the reason. Throws core::StopRequested.
std::optional<plan::EpochEstimate> try_devices(const Context& context, const config::ResolvedOptions& options,
                                               const plan::DevicePlan& plan);

/// In a process that try_devices() started: one rank of the trial.
Outcome measure_as_rank(const config::Configuration& configuration, const std::string& report);

}  // namespace stoker::train
