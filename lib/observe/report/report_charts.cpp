// SPDX-License-Identifier: Apache-2.0
// The sections of report.html that are charts over time: results, speed and resources. A metric that a later version
// writes gets a chart of its own without a change here.
#include <algorithm>
#include <cmath>

#include "core/format.h"
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
  // For several runs one line each, so that they can be distinguished.
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
      if (std::all_of(runs.begin(), runs.end(), [&](const RunRecord& one) { return is_trivial(one, column); }))
        continue;
      const std::string metric = column.substr(5), unit = unit_of(metric);
      const std::string label = unit == "percent" ? unit : metric;
      std::vector<Wanted> wanted = {{&RunRecord::by_epoch, column, "validation"}};
      if (runs.size() == 1 && any_has(runs, &RunRecord::by_report, "train_" + metric)) {
        wanted.push_back({&RunRecord::by_report, "train_" + metric, "training", 1, /*dashed=*/true});
      }
      html += chart_of(runs, metric, "epochs", runs.size() > 1 ? "validation, " + label : label, wanted, false,
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

// The sections of report.html about an evaluation: intervals, calibration, a comparison; precision, recall and F1 over
// the threshold; predicted against true numbers.

namespace {

using core::format;

constexpr size_t kShownThresholds = 40, kShownLabels = 6;

std::string number(double value) { return std::isnan(value) ? "" : format("{:.4g}", value); }

std::string in_grid(const std::string& charts) {
  return charts.empty() ? "" : "<div class=\"grid-of-charts\">" + charts + "</div>\n";
}

std::string figures_table(const CertaintyRecord& sure, const std::vector<MetricInterval>& figures,
                          const std::string& heading) {
  std::string html = format(
      "<tr><th scope=\"col\">{}</th><th scope=\"col\" class=\"n\">value</th><th scope=\"col\" class=\"n\">{:.0f} % "
      "interval</th></tr>\n",
      escape_html(heading), 100 * sure.level);
  for (const MetricInterval& figure : figures) {
    if (std::isnan(figure.value)) continue;
    if (figure.name == "top5" && figure.value >= 100) continue;  // as in the outcome: of few classes, all
    const bool has_interval = !std::isnan(figure.low) && !std::isnan(figure.high);
    html += format("<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                   escape_html(figure.name), number(figure.value),
                   has_interval ? format("{} to {}", number(figure.low), number(figure.high)) : "");
  }
  return table_of(heading, html);
}

Chart unit_square(const char* title, const std::string& x_label, const char* y_label) {
  Chart chart;
  chart.title = title;
  chart.x_label = x_label;
  chart.y_label = y_label;
  chart.x_min = chart.y_min = 0;
  chart.x_max = chart.y_max = chart.y_ceiling = 1;
  chart.has_latest = false;
  return chart;
}

/// Share that is right over confidence, and the line on which both are equal.
std::string reliability_chart(const CertaintyRecord& sure) {
  ChartLine line = {"accuracy", {}, {}, 0, false};
  ChartLine low = {"95 % interval, lower end", {}, {}, 1, true}, high = {"upper end", {}, {}, 1, true};
  for (const ReliabilityPoint& point : sure.reliability) {
    line.x.push_back(point.confidence);
    line.y.push_back(point.right);
    low.x.push_back(point.confidence);
    low.y.push_back(point.right_low);
    high.x.push_back(point.confidence);
    high.y.push_back(point.right_high);
  }
  Chart chart = unit_square("Reliability", "confidence", "accuracy");
  chart.lines = {{"perfect calibration", {0, 1}, {0, 1}, 2, true}, line, low, high};
  return in_grid(svg_chart(chart));
}

std::string thresholds_table(const CertaintyRecord& sure) {
  std::string rows;
  for (size_t i = 0; i < std::min(kShownThresholds, sure.thresholds.size()); ++i) {
    const ThresholdRow& row = sure.thresholds[i];
    if (std::isnan(row.threshold)) continue;
    rows += format(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        escape_html(row.label), number(row.threshold), number(row.f1), number(row.f1_now));
  }
  if (rows.empty()) return "";
  return "<details><summary>Thresholds with the best F1 on these images</summary><table><tr><th "
         "scope=\"col\">label</th>"
         "<th scope=\"col\" class=\"n\">threshold</th><th scope=\"col\" class=\"n\">F1</th><th scope=\"col\" "
         "class=\"n\">F1 now</th></tr>\n" +
         rows + "</table></details>\n";
}

std::string certainty_of(const RunRecord& run) {
  const CertaintyRecord& sure = run.sure;
  if (sure.images == 0) return "";
  std::string html = figures_table(sure, sure.figures, format("on {} images", core::count_text(sure.images)));
  if (!sure.better.empty()) {
    html += figures_table(sure, sure.better, format("more than {}, on the same images", sure.against));
  }
  if (sure.reliability.empty()) return html;
  html += format(
      "<p>Expected calibration error {:.2f} points; a perfectly calibrated network would show up to {:.2f} on so few "
      "images.</p>\n",
      100 * sure.ece, 100 * sure.chance_ece);
  return html + reliability_chart(sure);
}

std::string threshold_charts(const RunRecord& run) {
  Chart ranking = unit_square("Precision and recall", "recall", "precision");
  Chart f1 = unit_square("F1 over the threshold", "threshold", "F1");
  for (size_t i = 0; i < std::min(kShownLabels, run.label_curves.size()); ++i) {
    const LabelCurve& curve = run.label_curves[i];
    const int colour = static_cast<int>(i);
    ranking.lines.push_back({curve.label, curve.recall, curve.precision, colour, false});
    f1.lines.push_back({curve.label, curve.threshold, curve.f1, colour, false});
  }
  if (ranking.lines.empty()) return thresholds_table(run.sure);
  if (run.threshold > 0 && run.threshold < 1) {
    f1.lines.push_back({"threshold in use", {run.threshold, run.threshold}, {0, 1}, kFaintLine, true});
  }
  const size_t left_out = run.label_curves.size() - std::min(kShownLabels, run.label_curves.size());
  return in_grid(svg_chart(ranking) + svg_chart(f1)) +
         (left_out > 0
              ? format("<p class=\"faint\">Labels with most samples; {} more are in eval/curves.json.</p>\n", left_out)
              : "") +
         thresholds_table(run.sure);
}

std::string number_charts(const RunRecord& run) {
  std::string charts;
  for (const NumberPairs& pairs : run.number_pairs) {
    double low = pairs.truth[0], high = low;
    for (const std::vector<double>* values : {&pairs.truth, &pairs.predicted}) {
      const auto [least, most] = std::minmax_element(values->begin(), values->end());
      low = std::min(low, *least);
      high = std::max(high, *most);
    }
    Chart chart;
    chart.title = pairs.target;
    chart.x_label = "true";
    chart.y_label = "predicted";
    chart.x_min = chart.y_min = low;
    chart.x_max = chart.y_max = high;
    chart.has_latest = false;
    ChartLine samples = {"samples", pairs.truth, pairs.predicted, 0, false};
    samples.points_only = true;
    ChartLine equal = {"predicted = true", {low, high}, {low, high}, kFaintLine, true};
    chart.lines = {samples, equal};
    charts += svg_chart(chart);
  }
  return in_grid(charts);
}

}  // namespace

std::string certainty_section(const std::vector<RunRecord>& runs) {
  return section_of("Intervals and reliability", per_run(runs, certainty_of));
}

std::string threshold_section(const std::vector<RunRecord>& runs) {
  return section_of("Precision, recall and F1", per_run(runs, threshold_charts));
}

std::string numbers_section(const std::vector<RunRecord>& runs) {
  return section_of("Predicted against true", per_run(runs, number_charts));
}

}  // namespace stoker::observe
