// SPDX-License-Identifier: Apache-2.0
#include "commands/train/run_end.h"

#include "commands/runs/run_report.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "model/script/network_library.h"
#include "observe/listeners/progress.h"
#include "proof/standing.h"

namespace stoker::train {

void add_result(const engine::Metric& best, int64_t best_epoch, double best_value, Outcome& outcome) {
  if (best_epoch < 0) return;
  outcome.metric = best.name;
  outcome.value = best_value;
}

Outcome outcome_of(const engine::FinishEvent& finish, const config::ResolvedRunOptions& options,
                   const engine::Metric& best) {
  Outcome outcome;
  add_result(best, finish.best_epoch, finish.best_value, outcome);
  outcome.reason = engine::reason_text(finish.reason, finish.signal_name);
  outcome.updates = finish.updates;
  outcome.checkpoint = finish.checkpoint;
  const bool by_signal = finish.reason == engine::StopReason::signal;
  if (!by_signal && finish.reason != engine::StopReason::max_time) return outcome;
  const bool interrupted = by_signal && finish.signal_name == "INT";
  outcome.exit_code = interrupted ? core::kExitInterrupted : static_cast<int>(options.stop_exit_code);
  core::log_info("stopped by {} at epoch {} update {}; checkpoint verified: run the same command to go on",
                 by_signal ? "SIG" + finish.signal_name : "--max-time", finish.epochs_done + 1, finish.updates);
  return outcome;
}

engine::Metric best_metric(config::EvalMetric which, const engine::Task& task) {
  const engine::Metric wanted = engine::metric(which, engine::MetricUnit::number);
  for (const engine::Metric& metric : task.metrics()) {
    if (metric.name == wanted.name) return metric;
  }
  return wanted;  // the loss, which is no metric of a task
}

void say_where_it_is(const config::ResolvedOptions& all, const engine::FinishEvent& finish, engine::Metric best) {
  if (finish.reason == engine::StopReason::signal || finish.reason == engine::StopReason::max_time) return;
  const std::string& run_dir = all.run.run_dir;
  core::log_info("finished ({}) after {} epoch{}, {} updates, {}", engine::reason_text(finish.reason, ""),
                 finish.epochs_done, finish.epochs_done == 1 ? "" : "s", finish.updates,
                 core::duration_text(finish.elapsed_seconds));
  if (finish.best_epoch >= 0) {
    best.value = finish.best_value;
    core::log_info("best      {} in epoch {}", observe::metric_text(best, /*percent_digits=*/2), finish.best_epoch + 1);
  }
  if (!proof::standing().remedy.is_empty()) {
    core::log_info("backend   {}", proof::summary_text(proof::standing()));
  }
  core::log_info("run       {0} (summary.csv, metrics.jsonl, train.log, checkpoints/best, checkpoints/last)", run_dir);
  core::log_info("next      train eval {0}    train predict {0} IMAGES{1}", core::shell_word(run_dir),
                 model::is_network_file(all.model.model) ? "    each with --trust-model" : "");
}

void write_report_or_warn(const std::string& run_dir) {
  try {
    write_run_report({run_dir}, run_dir + "/report.html");
    core::log_info("report    {}/report.html", run_dir);
  } catch (const core::Error& error) {
    core::log_warning("no report: {}; make it with train runs --html {}", error.what(), core::shell_word(run_dir));
  }
}

}  // namespace stoker::train
