// SPDX-License-Identifier: Apache-2.0
// How a training run ends: its summary and its outcome.
#pragma once

#include <string>

#include "commands/command.h"
#include "config/options.h"
#include "engine/run/events.h"
#include "engine/task/task.h"
#include "observe/listeners/console.h"

namespace stoker::train {

/// The metric that chooses the best checkpoint, with its unit, without a value.
engine::Metric best_metric(config::EvalMetric which, const engine::Task& task);
/// The best result for the last line; nothing while no epoch (0-based, -1: none) was evaluated.
void add_result(const engine::Metric& best, int64_t best_epoch, double best_value, Outcome& outcome);

Outcome outcome_of(const engine::FinishEvent& finish, const config::ResolvedRunOptions& options,
                   const engine::Metric& best);
/// For people, a table on a terminal; nothing of a run that will go on. `best`: what chooses.
void log_run_summary(const config::ResolvedOptions& all, const engine::FinishEvent& finish, engine::Metric best,
                     observe::Console& console);
/// What ended a run stays its exit code: a page that cannot be written can be made again.
void write_report_or_warn(const std::string& run_dir);

}  // namespace stoker::train
