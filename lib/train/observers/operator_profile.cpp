// SPDX-License-Identifier: Apache-2.0
#include "train/observers/operator_profile.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/text/csv.h"

namespace stoker::train {
namespace {

using engine::OperatorRow;
using engine::OperatorTable;

constexpr int64_t kSkipped = 2, kRecorded = 5;  // updates
constexpr size_t kShown = 8;                    // rows
constexpr size_t kNameWidth = 44;               // characters of a name in the log: a line has 80

/// The sums of all rows.
struct Sums {
  double own = 0, device_own = 0;
};

Sums sums_of(const std::vector<OperatorRow>& rows) {
  Sums sums;
  for (const OperatorRow& row : rows) {
    sums.own += row.own_seconds;
    sums.device_own += row.device_own_seconds;
  }
  return sums;
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

OperatorProfile::OperatorProfile(std::string run_dir, config::Interval length, torch::Device device,
                                 bool may_use_events)
    : run_dir_(std::move(run_dir)), length_(length), recorder_(device, may_use_events) {}

void OperatorProfile::on_start(const engine::StartEvent& event) {
  int64_t updates = event.total_updates - event.start_updates;
  if (length_.unit == config::Interval::Unit::updates)
    updates = std::min(updates, static_cast<int64_t>(length_.amount));
  const int64_t skipped = std::clamp<int64_t>(updates - 1, 0, kSkipped);
  recorder_.begin(skipped, std::clamp<int64_t>(updates - skipped, 1, kRecorded));
}

void OperatorProfile::on_report(const engine::ReportEvent&) {
  if (recorder_.is_done()) write();
}

void OperatorProfile::on_epoch(const engine::EpochEvent&) {
  if (recorder_.is_done()) write();
}

void OperatorProfile::on_finish(const engine::FinishEvent&) { write(); }

void OperatorProfile::write() {
  const OperatorTable& table = recorder_.table();
  if (std::exchange(is_written_, true) || table.updates() == 0) return;
  try {
    core::write_file_atomically(run_dir_ + "/operators.csv", operators_csv(table, OperatorTable::By::name),
                                /*durable=*/false);
    core::write_file_atomically(run_dir_ + "/operator_shapes.csv",
                                operators_csv(table, OperatorTable::By::name_and_shapes), /*durable=*/false);
    for (const std::string& line : operators_text(table, kShown)) core::log_info("{}", line);
    core::log_info("          all of them: {}/operators.csv, by input shapes: operator_shapes.csv", run_dir_);
  } catch (const core::Error& error) {
    core::log_warning("no table of operators: {}", error.what());
  }
}

std::string operators_csv(const OperatorTable& table, OperatorTable::By by) {
  const bool has_shapes = by == OperatorTable::By::name_and_shapes;
  const std::vector<OperatorRow> rows = table.rows(by);
  const Sums sums = sums_of(rows);
  std::vector<std::string> cells = {"operator"};
  const auto add = [&cells](std::initializer_list<std::string> more) {
    cells.insert(cells.end(), more.begin(), more.end());
  };
  if (has_shapes) add({"input_shapes"});
  add({"calls", "total_ms", "own_ms", "own_percent"});
  if (table.has_device()) add({"device_total_ms", "device_own_ms", "device_own_percent"});
  std::string text = core::csv_row(cells) + "\n";
  const auto milliseconds = [](double seconds) { return core::format("{:.6f}", 1e3 * seconds); };
  const auto share = [](double part, double whole) { return core::format("{:.4f}", percent(part, whole)); };
  for (const OperatorRow& row : rows) {
    cells = {row.name};
    if (has_shapes) add({row.shapes});
    add({core::format("{:.10g}", row.calls), milliseconds(row.total_seconds), milliseconds(row.own_seconds),
         share(row.own_seconds, sums.own)});
    if (table.has_device()) {
      add({milliseconds(row.device_total_seconds), milliseconds(row.device_own_seconds),
           share(row.device_own_seconds, sums.device_own)});
    }
    text += core::csv_row(cells) + "\n";
  }
  return text;
}

std::vector<std::string> operators_text(const OperatorTable& table, size_t count) {
  const std::vector<OperatorRow> rows = table.rows(OperatorTable::By::name);
  const Sums sums = sums_of(rows);
  std::vector<std::string> lines;
  lines.push_back(core::format("operators of an update of {:.4g} ms (mean of {}), by own time{}", 1e3 * table.seconds(),
                               table.updates(), table.has_device() ? " of the device" : ""));
  for (size_t i = 0; i < std::min(count, rows.size()); ++i) {
    const OperatorRow& row = rows[i];
    std::string name = row.name;
    if (name.size() > kNameWidth) name = name.substr(0, kNameWidth - 3) + "...";
    const double own = table.has_device() ? row.device_own_seconds : row.own_seconds;
    const double whole = table.has_device() ? sums.device_own : sums.own;
    lines.push_back(core::format("  {:<{}}  {:>6.4g} calls  {:>8.4g} ms  {:>3.0f}%", name, kNameWidth, row.calls,
                                 1e3 * own, percent(own, whole)));
  }
  return lines;
}

}  // namespace stoker::train
