// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/run_files.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/crash/crash_file.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/machine.h"
#include "core/text/csv.h"
#include "observe/diagnosis/diagnosis.h"
#include "observe/diagnosis/time_figures.h"
#include "observe/resources/resources.h"

namespace stoker::observe {
namespace {

using core::format;
using core::Json;

constexpr std::ptrdiff_t kFrontMetrics = 2, kCellsBeforeMetrics = 3;
constexpr uint64_t kMaxSummaryBytes = 64 << 20;

std::string utc_now() { return core::utc_text(std::time(nullptr)); }

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

/// A diagnosis is null before there is one.
void add_findings(const engine::Findings& found, Json& line) {
  line["diagnosis"] = found.diagnosis ? diagnosis_json(*found.diagnosis) : Json(nullptr);
  if (found.resources) line["resources"] = resource_json(*found.resources);
}

/// A row of summary.csv: the first metrics stand beside the losses, the others at the end.
std::string summary_row(std::vector<std::string> cells, const std::vector<std::string>& metrics) {
  const auto back = metrics.begin() + std::min(kFrontMetrics, static_cast<std::ptrdiff_t>(metrics.size()));
  cells.insert(cells.begin() + kCellsBeforeMetrics, metrics.begin(), back);
  cells.insert(cells.end(), back, metrics.end());
  return core::csv_row(cells);
}

/// The state after a crash: it adds time, reason, library and exit code.
void prepare_for_crash(const std::string& path, Json status) {
  status["state"] = "failed";
  status.erase("time");
  const std::string text = core::json_page(status);
  core::prepare_crash_file(path, text.substr(0, text.size() - std::strlen("\n}\n")));
}

double exchange_share(const std::vector<engine::RankTimes>& ranks) {
  const std::optional<engine::RankSummary> summary = engine::rank_summary(ranks);
  return summary ? summary->exchange_share : 0;
}

}  // namespace

std::string summary_header(const std::vector<engine::Metric>& metrics) {
  std::vector<std::string> names;
  for (const engine::Metric& metric : metrics) names.push_back("eval_" + metric.name);
  return summary_row({"epoch", "train_loss", "eval_loss", "lr", "updates", "images", "best", "bad_images",
                      "train_seconds", "eval_seconds", "images_per_second", "data_wait_share", "update_seconds",
                      "update_p95_seconds", "update_max_seconds", "exchange_share"},
                     names);
}

namespace {

/// The row of an epoch whose evaluation only a stop caused, as it is without the stop.
void clear_evaluation(const std::vector<std::string>& names, std::vector<std::string>& cells) {
  for (size_t k = 0; k < std::min(names.size(), cells.size()); ++k) {
    if (names[k] == "best") cells[k] = "0";
    if (names[k].rfind("eval_", 0) == 0 && names[k] != "eval_seconds") cells[k].clear();
  }
}

}  // namespace

std::string summary_until(const std::string& text, const std::string& header, int64_t epochs_done,
                          int64_t evaluated_updates, const std::string& path) {
  const std::vector<std::string> own = core::read_csv_table(header, path, "epoch").columns;
  const std::string whole = text.substr(0, text.find_last_of('\n') + 1);  // a kill leaves half a row
  const core::CsvTable table = core::read_csv_table(whole, path, "epoch", own);
  if (!table.left_out.empty()) core::log_warning("{}", table.left_out_text());
  const auto place_of = [&](const char* name) {
    return static_cast<size_t>(std::find(table.columns.begin(), table.columns.end(), name) - table.columns.begin());
  };
  const size_t place = place_of("epoch"), updates = place_of("updates");
  std::string kept = core::csv_row(table.columns) + "\n";
  int64_t offset = 0, unnumbered = 0;
  for (const core::CsvTable::Row& row : table.rows) {
    std::vector<std::string> cells = row.cells;
    char* end = nullptr;
    const double number = std::strtod(cells.at(place).c_str(), &end);
    if (end == cells[place].c_str() || *end != '\0' || !(number >= 0 && number < 1e15)) {
      if (unnumbered++ == 0) core::log_warning("{}:{}: the row names no epoch: left out", path, row.line);
      continue;
    }
    int64_t epoch = std::llround(number);
    if (epoch == 0) offset = 1;  // an older program wrote it
    epoch += offset;
    cells[place] = format("{}", epoch);
    const bool has_updates = updates < cells.size() && !cells[updates].empty();
    const bool was_due = has_updates && std::strtoll(cells[updates].c_str(), nullptr, 10) <= evaluated_updates;
    if (has_updates && !was_due) clear_evaluation(table.columns, cells);
    if (epoch <= epochs_done || was_due) kept += core::csv_row(cells) + "\n";
  }
  return kept;
}

RunFiles::RunFiles(std::string run_dir, core::FileSystem& files) : run_dir_(std::move(run_dir)), files_(files) {}

RunFiles::~RunFiles() {
  if (!is_training_) return;
  try {
    write_status("failed", core::Json(last_fields_));
  } catch (...) {
    // Out of memory: the state stays as it was.
  }
}

void RunFiles::on_start(const engine::StartEvent& event) {
  start_ = event;
  const std::string path = run_dir_ + "/summary.csv";
  const std::string old = core::file_exists(path) ? core::read_file(path, kMaxSummaryBytes, files_) : "";
  const std::string summary =
      summary_until(old, summary_header(event.metrics), event.start_epoch, event.evaluated_updates, path);
  summary_columns_ = core::read_csv_table(summary, path, "epoch").columns.size();
  core::write_file_atomically(path, summary, /*durable=*/true, files_);
  // A full disk or a kill may have left half a line: the next event must not be glued to it.
  core::cut_half_line(run_dir_ + "/metrics.jsonl", files_);
  is_training_ = true;
  append_event({{"event", event.start_updates > 0 || event.start_epoch > 0 ? "resume" : "start"},
                {"first_epoch", 1},
                {"epoch", event.start_epoch + 1},
                {"updates", event.start_updates},
                {"epochs", event.epochs},
                {"updates_per_epoch", event.updates_per_epoch},
                {"total_updates", event.total_updates},
                {"backend", event.backend},
                {"training_flop_per_image", event.compute.training_flop},
                {"peak_flop_per_second", event.compute.peak_flop_per_second}});
  write_status("training", {{"epoch", event.start_epoch + 1}, {"updates", event.start_updates}});
}

void RunFiles::on_report(const engine::ReportEvent& event) {
  Json fields = {{"epoch", event.at.epoch + 1},
                 {"updates", event.at.updates},
                 {"update_in_epoch", event.at.update_in_epoch},
                 {"train_loss", event.train_loss},
                 {"train_" + event.train_score.name, event.train_score.value},
                 {"lr", event.at.learning_rate},
                 {"images_per_second", event.images_per_second},
                 {"data_wait_share", event.data_wait_share},
                 {"gradient_norm", event.gradient_norm < 0 ? Json(nullptr) : Json(event.gradient_norm)},
                 {"skipped_updates", event.skipped_updates},
                 {"loss_scale", event.loss_scale > 0 ? Json(event.loss_scale) : Json(nullptr)},
                 {"elapsed_seconds", event.elapsed_seconds},
                 {"loader",
                  {{"read_seconds", event.loader.read_seconds},
                   {"decode_seconds", event.loader.decode_seconds},
                   {"resize_seconds", event.loader.resize_seconds},
                   {"augment_seconds", event.loader.augment_seconds},
                   {"write_seconds", event.loader.write_seconds},
                   {"worker_idle_seconds", event.loader.worker_idle_seconds},
                   {"batches_ready", event.loader.batches_ready},
                   {"batches_capacity", event.loader.batches_capacity}}}};
  fields["times"] = time_json(event.times);
  fields["ranks"] = ranks_json(event.ranks);
  add_findings(event.found, fields);
  Json line = {{"event", "report"}};
  line.update(fields);
  append_event(line);
  write_status("training", fields);
}

void RunFiles::on_digest(const engine::DigestEvent& event) {
  append_event({{"event", "digest"},
                {"epoch", event.epoch + 1},
                {"updates", event.updates},
                {"weights", event.weights},
                {"images", event.images}});
}

void RunFiles::on_epoch(const engine::EpochEvent& event) {
  const auto evaluated = [&](double value) { return event.has_eval ? format("{:.6f}", value) : std::string(); };
  std::vector<std::string> metrics(start_.metrics.size());  // empty: undefined
  for (size_t i = 0; i < std::min(metrics.size(), event.metrics.size()); ++i) {
    if (!std::isnan(event.metrics[i].value)) metrics[i] = evaluated(event.metrics[i].value);
  }
  const auto measured = [&](std::string text) { return event.is_inside ? std::string() : text; };
  const core::Spread& update = event.times.update;
  const std::vector<std::string> cells = {format("{}", event.epoch + 1),
                                          format("{:.6f}", event.train_loss),
                                          evaluated(event.eval_loss),
                                          format("{:.10g}", event.learning_rate),
                                          format("{}", event.updates),
                                          format("{}", event.images),
                                          event.is_best ? "1" : "0",
                                          format("{}", event.bad_images),
                                          measured(format("{:.3f}", event.train_seconds)),
                                          format("{:.3f}", event.eval_seconds),
                                          measured(format("{:.1f}", event.images_per_second)),
                                          measured(format("{:.4f}", event.data_wait_share)),
                                          measured(format("{:.6f}", update.mean_seconds)),
                                          measured(format("{:.6f}", update.p95_seconds)),
                                          measured(format("{:.6f}", update.max_seconds)),
                                          measured(format("{:.4f}", exchange_share(event.ranks)))};
  std::string row = summary_row(cells, metrics);
  row.append(summary_columns_ - std::min(summary_columns_, cells.size() + metrics.size()), ',');  // of older programs
  core::append_file(run_dir_ + "/summary.csv", row + "\n", /*durable=*/true, files_);
  const std::optional<int64_t> allocated = core::read_allocated_bytes();
  Json line = {{"event", event.is_inside ? "evaluation" : "epoch"},
               {"epoch", event.epoch + 1},
               {"updates", event.updates},
               {"train_loss", event.train_loss},
               {"eval_loss", event.has_eval ? Json(event.eval_loss) : Json(nullptr)},
               {"best", event.is_best}};
  for (const engine::Metric& metric : start_.metrics) line["eval_" + metric.name] = nullptr;
  for (const engine::Metric& metric : event.metrics) line["eval_" + metric.name] = metric.value;
  if (event.is_inside) return append_event(line);
  line["cut_short"] = event.is_cut_short;
  line["resident_bytes"] = core::read_process_memory().resident_bytes;
  line["allocated_bytes"] = allocated ? Json(*allocated + event.working_bytes) : Json(nullptr);
  line["images_per_second"] = event.images_per_second;
  line["data_wait_share"] = event.data_wait_share;
  line["mfu"] = optional_number(event.utilization);
  line["times"] = time_json(event.times);
  line["ranks"] = ranks_json(event.ranks);
  add_findings(event.found, line);
  append_event(line);
}

void RunFiles::on_checkpoint(const engine::CheckpointEvent& event) {
  append_event({{"event", "checkpoint"},
                {"updates", event.updates},
                {"path", event.path},
                {"bytes", event.bytes},
                {"seconds", event.seconds},
                {"stall_seconds", event.stall_seconds}});
}

void RunFiles::on_finish(const engine::FinishEvent& event) {
  Json fields = {{"reason", engine::reason_text(event.reason, event.signal_name)},
                 {"updates", event.updates},
                 {"epochs_done", event.epochs_done},
                 {"best_value", event.best_value},
                 {"best_epoch", event.best_epoch + 1},
                 {"best_updates", event.best_updates},
                 {"checkpoint", event.checkpoint},
                 {"elapsed_seconds", event.elapsed_seconds}};
  if (event.averaged > 0) {
    fields["averaged"] = event.averaged;
    fields["average_value"] = optional_number(event.average_value);
  }
  Json line = {{"event", "finish"}};
  line.update(fields);
  append_event(line);
  is_training_ = false;
  write_status(engine::continues(event.reason) ? "stopped" : "finished", fields);
}

void RunFiles::append_event(Json event) const {
  event["time"] = utc_now();
  core::append_file(run_dir_ + "/metrics.jsonl", core::json_line(event) + "\n",
                    /*durable=*/false, files_);
}

void RunFiles::write_status(const std::string& state, const Json& fields) {
  last_fields_ = fields;
  Json status = {{"state", state}, {"pid", ::getpid()}, {"time", utc_now()}};
  status.update(fields);
  if (is_training_ && state == "training") {
    prepare_for_crash(run_dir_ + "/status.json", status);
  } else {
    core::drop_crash_file();
  }
  try {
    core::write_file_atomically(run_dir_ + "/status.json", core::json_page(status), /*durable=*/false, files_);
  } catch (const core::Error&) {
    // News only; the rows above are what counts, and they throw.
  }
}

}  // namespace stoker::observe
