// SPDX-License-Identifier: Apache-2.0
// The sections of report.html that are charts over time: results, speed and resources. A metric that a later version
// writes gets a chart of its own without a change here.
#include <algorithm>

#include "observe/report/page.h"
#include "observe/report/report_page.h"
#include "observe/report/svg_chart.h"

namespace stoker::observe {
namespace {

constexpr char kLossTitle[] = "Loss", kLearningRateTitle[] = "Learning rate";

using Runs = std::vector<RunRecord>;
using CurvesOf = Curves RunRecord::*;

/// One curve that a chart takes from each run that has it.
struct Wanted {
  CurvesOf from;
  std::string name;
  std::string label;  ///< on a page of one run; else the path of the run stands before it
  double scale = 1;
  bool dashed = false;
};

void add_lines(const Runs& runs, const std::vector<Wanted>& wanted, Chart& chart) {
  for (size_t i = 0; i < runs.size(); ++i) {
    int own_colour = 0;
    for (const Wanted& want : wanted) {
      const int colour = runs.size() == 1 ? own_colour++ : run_colour(i);
      const Curves& curves = runs[i].*want.from;
      const auto found = curves.find(want.name);
      if (found == curves.end()) continue;
      ChartLine line = {want.label, found->second.x, found->second.y, colour == kFaintLine ? colour : colour % 6,
                        want.dashed};
      if (runs.size() > 1) line.label = runs[i].path + (wanted.size() > 1 ? " " + want.label : "");
      for (double& y : line.y) y *= want.scale;
      chart.lines.push_back(std::move(line));
    }
  }
}

std::string chart_of(const Runs& runs, const std::string& title, const std::string& x_label, const std::string& y_label,
                     const std::vector<Wanted>& wanted, bool from_zero = false, double ceiling = 1e300,
                     double least_high = -1e300) {
  Chart chart;
  chart.may_be_logarithmic = title == kLossTitle || title == kLearningRateTitle;
  chart.title = title;
  chart.x_label = x_label;
  chart.y_label = y_label;
  chart.least_high = least_high;
  chart.y_ceiling = ceiling;
  if (from_zero) chart.y_min = 0;
  add_lines(runs, wanted, chart);
  return svg_chart(chart);
}

bool any_has(const Runs& runs, CurvesOf from, const std::string& name) {
  return std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) { return (run.*from).count(name) > 0; });
}

/// No share is above all of it, whatever the file holds.
double ceiling_of(const std::string& unit) { return unit == "percent" ? 100 : unit == "share" ? 1 : 1e300; }

std::string loss_chart(const Runs& runs) {
  std::vector<Wanted> wanted = {{&RunRecord::by_epoch, "eval_loss", "validation"}};
  const Wanted per_epoch = {&RunRecord::by_epoch, "train_loss", "training, per epoch", 1, /*dashed=*/true};
  const Wanted per_report = {&RunRecord::by_report, "train_loss", "training, per report", 1, /*dashed=*/true};
  const bool has_reports = any_has(runs, &RunRecord::by_report, "train_loss");
  // Of several runs one line each, so that they can be distinguished.
  const bool is_enough = runs.size() > 1 && any_has(runs, &RunRecord::by_epoch, "eval_loss");
  if (runs.size() == 1 || !has_reports) wanted.push_back(per_epoch);
  if (has_reports) wanted.push_back(per_report);
  if (is_enough) wanted.resize(1);
  return chart_of(runs, kLossTitle, "epochs", is_enough ? "validation loss" : "loss", wanted);
}

/// Every eval_* column but the loss and clocks, in the order of the first run that has it.
std::string metric_charts(const Runs& runs) {
  std::string html;
  std::vector<std::string> done = {"eval_loss", "eval_seconds"};
  for (const RunRecord& run : runs) {
    for (const std::string& column : run.epoch_columns) {
      if (column.rfind("eval_", 0) != 0 || std::find(done.begin(), done.end(), column) != done.end()) continue;
      done.push_back(column);
      const std::string metric = column.substr(5), unit = unit_of(metric);
      std::vector<Wanted> wanted = {{&RunRecord::by_epoch, column, "validation"}};
      if (runs.size() == 1 && any_has(runs, &RunRecord::by_report, "train_" + metric)) {
        wanted.push_back({&RunRecord::by_report, "train_" + metric, "training", 1, /*dashed=*/true});
      }
      html += chart_of(runs, metric, "epochs", runs.size() > 1 ? "validation, " + unit : unit, wanted, false,
                       ceiling_of(unit));
    }
  }
  return html;
}

std::string section(const std::string& title, const std::string& charts) {
  return section_of(title, charts.empty() ? "" : "<div class=\"grid-of-charts\">" + charts + "</div>\n");
}

}  // namespace

std::string curves_section(const Runs& runs) {
  const CurvesOf reports = &RunRecord::by_report;
  const bool has_reports = any_has(runs, reports, "lr");
  const CurvesOf finest = has_reports ? reports : &RunRecord::by_epoch;  // a short run has no report
  std::string charts = loss_chart(runs) + metric_charts(runs);
  charts += chart_of(runs, kLearningRateTitle, "epochs", "learning rate", {{finest, "lr", "learning rate"}}, true);
  charts += chart_of(runs, "Gradient norm", "epochs", "norm", {{reports, "gradient_norm", "before clipping"}}, true);
  return section("Curves", charts);
}

std::string resources_section(const Runs& runs) {
  const CurvesOf minutes = &RunRecord::by_minute, reports = &RunRecord::by_report;
  const CurvesOf finest = any_has(runs, reports, "lr") ? reports : &RunRecord::by_epoch;  // a short run has no report
  const std::string x = "minutes of training";
  const auto wanted = [&](const char* name, const char* label, double scale = 1, bool dashed = false) {
    return Wanted{minutes, std::string("resources.") + name, label, scale, dashed};
  };
  std::string charts;
  charts += chart_of(runs, "Speed", "epochs", "images/s", {{finest, "images_per_second", "images/s"}}, true);
  charts += chart_of(runs, "Waited for data", "epochs", "percent of the time",
                     {{finest, "data_wait_share", "data wait", 100}}, /*from_zero=*/true, /*ceiling=*/100,
                     /*least_high=*/10);
  charts += chart_of(runs, "Batches ready when one is requested", "epochs", "batches",
                     {{reports, "times.queue.mean_batches", "mean"},
                      {reports, "times.queue.capacity_batches", "capacity", 1, /*dashed=*/true}},
                     /*from_zero=*/true);
  charts += chart_of(runs, "GPU", x, "percent", {wanted("gpu_percent", "busy")}, true, 100);
  charts += chart_of(
      runs, "GPU memory", x, "GB",
      {wanted("gpu_memory_used_bytes", "used", 1e-9), wanted("gpu_memory_total_bytes", "total", 1e-9, /*dashed=*/true)},
      true);
  charts += chart_of(runs, "GPU power", x, "watts", {wanted("gpu_power_watts", "power")}, true);
  charts += chart_of(runs, "GPU temperature", x, "degrees Celsius", {wanted("gpu_celsius", "temperature")});
  charts += chart_of(
      runs, "CPU", x, "percent",
      {wanted("cpu_percent", "this process"), wanted("machine_cpu_percent", "the whole machine", 1, /*dashed=*/true)},
      true, 100);
  charts += chart_of(
      runs, "Memory", x, "GB",
      {wanted("resident_bytes", "this process", 1e-9), wanted("ram_used_bytes", "in use", 1e-9, /*dashed=*/true)},
      true);
  charts += chart_of(runs, "Storage", x, "MB/s",
                     {wanted("read_bytes_per_second", "read", 1e-6),
                      wanted("written_bytes_per_second", "written", 1e-6, /*dashed=*/true)},
                     true);
  return section("Speed and resources", charts);
}

}  // namespace stoker::observe
