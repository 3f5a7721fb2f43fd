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

/// Seconds per byte that copying memory which is not page-locked is slowed down by: tests and
/// scripts/bench/bottlenecks.py set STOKER_TEST_SLOW_COPY to microseconds per megabyte, since no machine
/// without a GPU has slow copies. 0 without that variable.
double slow_copy_for_tests(const config::LoaderOptions& options);

}  // namespace stoker::app
