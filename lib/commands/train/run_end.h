// SPDX-License-Identifier: Apache-2.0
// How a training run ends: its summary and its outcome.
#pragma once

#include <string>

#include "commands/command.h"
#include "config/options.h"
#include "config/resolution.h"
#include "data/open_datasets.h"
#include "engine/loop/trainer.h"
#include "engine/run/events.h"
#include "engine/task/task.h"
#include "observe/observers/banner.h"
#include "observe/observers/console.h"

namespace stoker::train {

/// The metric that chooses the best checkpoint, with its unit, without a value.
engine::Metric best_metric(config::EvalMetric which, const engine::Task& task);
/// The best result for the last line; nothing while no epoch (0-based, -1: none) was evaluated.
void add_result(const engine::Metric& best, int64_t best_epoch, double best_value, Outcome& outcome);

Outcome outcome_of(const engine::FinishEvent& finish, const config::ResolvedRunOptions& options,
                   const engine::Metric& best);
/// For people, a table on a terminal; nothing of a run that will continue. `best`: what chooses.
void log_run_summary(const config::ResolvedOptions& all, const engine::FinishEvent& finish, engine::Metric best,
                     observe::Console& console);
/// The exit code stays that of the run: a page that cannot be written can be made again.
void write_report_or_warn(const std::string& run_dir);

// The banner of a run, collected from its parts.

/// The facts before anything is measured: program, command and data.
observe::BannerFacts known_facts(const Context& context, const config::ResolvedOptions& options,
                                 const data::Datasets& datasets);
/// Without what ranks, caches, memory and the checkpoint add.
observe::BannerFacts banner_facts(const Context& context, const config::Resolution& resolution,
                                  const data::Datasets& datasets, const engine::TrainerSettings& settings,
                                  const engine::Learner& learner, const data::LoaderStats& loader);

}  // namespace stoker::train
