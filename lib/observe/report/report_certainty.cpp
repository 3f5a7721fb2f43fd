// SPDX-License-Identifier: Apache-2.0
// The sections of report.html about an evaluation: intervals, calibration, a comparison; precision, recall and F1 over
// the threshold; predicted against true numbers.
#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "observe/report/html.h"
#include "observe/report/page.h"
#include "observe/report/report_page.h"
#include "observe/report/svg_chart.h"

namespace stoker::observe {
namespace {

using core::format;

constexpr size_t kShownThresholds = 40, kShownLabels = 6;

std::string number(double value) { return std::isnan(value) ? "" : format("{:.4g}", value); }

std::string in_grid(const std::string& charts) {
  return charts.empty() ? "" : "<div class=\"grid-of-charts\">" + charts + "</div>\n";
}

std::string figures_table(const SureRecord& sure, const std::vector<SureFigure>& figures, const std::string& heading) {
  std::string html = format(
      "<tr><th scope=\"col\">{}</th><th scope=\"col\" class=\"n\">value</th><th scope=\"col\" class=\"n\">{:.0f} % "
      "interval</th></tr>\n",
      escape_html(heading), 100 * sure.level);
  for (const SureFigure& figure : figures) {
    if (std::isnan(figure.value)) continue;
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
std::string reliability_chart(const SureRecord& sure) {
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
  Chart chart = unit_square("Reliability", "confidence", "share that is right");
  chart.lines = {{"perfect calibration", {0, 1}, {0, 1}, 2, true}, line, low, high};
  return in_grid(svg_chart(chart));
}

std::string thresholds_table(const SureRecord& sure) {
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
  const SureRecord& sure = run.sure;
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
