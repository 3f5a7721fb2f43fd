// SPDX-License-Identifier: Apache-2.0
// What a run knows of itself that a diagnosis reasons from, and how its ceilings are measured.
#pragma once

#include "config/config.h"
#include "core/system/machine.h"
#include "data/source.h"
#include "engine/step/learner.h"
#include "engine/task/task.h"
#include "observe/diagnosis/diagnoser.h"

namespace stoker::app {

/// `options` resolved; `train` as the loader reads it.
observe::DiagnosisFacts known_facts(const config::Options& options, const core::MachineFacts& machine,
                                    const config::DataFacts& data_facts, const data::Source& train);
/// The probes try `learner` on noise in between updates, and leave it as it was; all that is passed outlives them.
observe::ThroughputProbes throughput_probes(const config::Options& options, const core::MachineFacts& machine,
                                            const data::Source& train, engine::Learner& learner,
                                            const engine::Task& task);

}  // namespace stoker::app
