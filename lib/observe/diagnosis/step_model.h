// SPDX-License-Identifier: Apache-2.0
// How long an update takes, from what limits it: the training thread, the workers, the CPUs that both share.
// Answers "what if" by arithmetic.
#pragma once

#include <cstdint>

#include "engine/run/events.h"
#include "observe/resources/resources.h"

namespace stoker::observe {

/// Seconds per update. A copy with another value is a "what if".
struct StepModel {
  double update = 0;          ///< as measured
  double training = 0;        ///< of the training thread, had it not waited for data nor for a CPU
  double network_cpu = 0;     ///< CPU time of all threads but the workers
  double worker_cpu = 0;      ///< CPU time of all workers together
  double worker_blocked = 0;  ///< they waited for storage
  double workers = 0;         ///< threads; 0: the training thread decodes
  double cpus = 1;            ///< that this process may use
  double taken_cpus = 0;      ///< of those, kept busy by other processes
  double least_cpus = 0.25;   ///< that it gets whatever others take: as many as it was seen to get
  double slack = 1;           ///< measured over what the limits explain: bursts, hand-overs. Never below 1

  /// What the limits explain, without slack: the slowest of the training thread, the workers and the CPUs.
  double limit() const;
  /// Of `changed`, in percent, how much more updates per second than measured. Never below 0.
  double gain_percent(const StepModel& changed) const;
};

StepModel step_model(const engine::StepTimings& times, const ResourceReading& resources, int64_t cpus);

}  // namespace stoker::observe
