// SPDX-License-Identifier: Apache-2.0
#include "commands/train/run_end.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "commands/runs/run_report.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "model/script/network_library.h"
#include "observe/listeners/progress.h"
#include "observe/report/run_record_files.h"
#include "proof/standing.h"

namespace stoker::train {
namespace {

/// Cells of summary.csv for `epoch`, 0-based, -1: the last; empty where it has none.
std::vector<std::string> cells_of(const observe::RunRecord& record, const std::vector<std::string>& columns,
                                  int64_t epoch) {
  const auto& names = record.epoch_columns;
  const auto place = [&](const std::string& name) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  for (auto row = record.epoch_rows.rbegin(); row != record.epoch_rows.rend(); ++row) {
    const size_t at = place("epoch");
    if (epoch >= 0 && (at >= row->size() || (*row)[at] != std::to_string(epoch + 1))) continue;
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      cells.push_back(place(column) < row->size() ? (*row)[place(column)] : "");
    }
    return cells;
  }
  return {};
}

/// "0.4123", "91.50%", "-" of an empty cell.
std::string cell_text(const std::string& cell, const engine::Metric* metric) {
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  if (cell.empty() || *end != '\0') return "-";
  if (metric == nullptr) return core::format("{:.4f}", value);
  const std::string text = observe::metric_text({metric->name, metric->unit, value}, /*percent_digits=*/2);
  return text.substr(metric->name.size() + 1);
}

/// Best, last, time, where: what a terminal shows of a run that has ended, for its width.
std::string end_table(const std::string& run_dir, const engine::FinishEvent& finish, const engine::Metric& best,
                      const observe::Console& console) {
  observe::RunRecord record;
  record.path = run_dir;
  try {
    observe::read_summary(record, 1);
  } catch (const core::Error&) {  // the table is for people: it shows what there is
  }
  const bool has_metric = best.name != "loss" && finish.best_epoch >= 0;
  const std::vector<std::string> columns = {"epoch", "eval_" + best.name, "eval_loss", "train_loss"};
  std::vector<observe::LinePart> head = {{"        epoch", 0, false, "1"}};
  std::vector<observe::LinePart> best_row = {{"", 0, false, "32"}}, last_row = {{"", 0}};
  const std::vector<std::string> of_best = cells_of(record, columns, finish.best_epoch);
  const std::vector<std::string> of_last = cells_of(record, columns, -1);
  if (!of_best.empty()) best_row[0].text = core::format("best    {:>5}", of_best[0]);
  if (!of_last.empty()) last_row[0].text = core::format("last    {:>5}", of_last[0]);
  const std::string titles[] = {"", best.name, "val loss", "train loss"};
  for (size_t i = has_metric ? 1 : 2; i < columns.size(); ++i) {
    const engine::Metric* const metric = i == 1 ? &best : nullptr;
    if (i == 2 && finish.best_epoch < 0) continue;
    const int rank = static_cast<int>(i), width = static_cast<int>(std::max<size_t>(titles[i].size(), 10));
    head.push_back({core::format("{:>{}}", titles[i], width), rank, false, "1"});
    if (!of_best.empty()) {
      best_row.push_back({core::format("{:>{}}", cell_text(of_best[i], metric), width), rank, false, "32"});
    }
    if (!of_last.empty()) last_row.push_back({core::format("{:>{}}", cell_text(of_last[i], metric), width), rank});
  }
  std::string table = console.fitted(head);
  if (finish.best_epoch >= 0 && !of_best.empty()) table += "\n" + console.fitted(best_row);
  if (!of_last.empty()) table += "\n" + console.fitted(last_row);
  table += "\n" + console.fitted({{"time", 0, false, "1"},
                                  {"  " + core::duration_text(finish.elapsed_seconds), 0},
                                  {core::counted(finish.epochs_done, "epoch"), 1},
                                  {core::counted(finish.updates, "update"), 2},
                                  {"(" + engine::reason_text(finish.reason, "") + ")", 3}});
  return table + "\nwhere   " + core::printable(run_dir);
}

}  // namespace

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

void log_run_summary(const config::ResolvedOptions& all, const engine::FinishEvent& finish, engine::Metric best,
                     observe::Console& console) {
  if (finish.reason == engine::StopReason::signal || finish.reason == engine::StopReason::max_time) return;
  const std::string& run_dir = all.run.run_dir;
  console.log_as(core::format("finished ({}) after {} epoch{}, {} updates, {}", engine::reason_text(finish.reason, ""),
                              finish.epochs_done, finish.epochs_done == 1 ? "" : "s", finish.updates,
                              core::duration_text(finish.elapsed_seconds)),
                 console.is_live() ? end_table(run_dir, finish, best, console) : "");
  if (finish.best_epoch >= 0) {
    best.value = finish.best_value;
    console.log_as(core::format("best      {} in epoch {}", observe::metric_text(best, /*percent_digits=*/2),
                                finish.best_epoch + 1),
                   "");
  }
  if (!proof::standing().remedy.is_empty()) {
    core::log_info("backend   {}", proof::summary_text(proof::standing()));
  }
  console.log_as(
      core::format("run       {0} (summary.csv, metrics.jsonl, train.log, checkpoints/best, checkpoints/last)",
                   run_dir),
      "");
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
