// SPDX-License-Identifier: Apache-2.0
// The section of report.html that says how sure an evaluation is: intervals, calibration, thresholds, a comparison.
#include <cmath>

#include "core/format.h"
#include "observe/report/html.h"
#include "observe/report/report_page.h"
#include "observe/report/svg_chart.h"

namespace stoker::observe {
namespace {

using core::format;

constexpr size_t kShownThresholds = 40;

std::string number(double value) { return std::isnan(value) ? "n/a" : format("{:.4g}", value); }

std::string figures_table(const SureRecord& sure, const std::vector<SureFigure>& figures, const std::string& heading) {
  std::string html = format(
      "<div class=\"scroll\"><table><tr><th>{}</th><th class=\"n\"></th><th class=\"n\">{:.0f} % interval</th></tr>\n",
      heading, 100 * sure.level);
  for (const SureFigure& figure : figures) {
    html += format("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{} to {}</td></tr>\n",
                   escape_html(figure.name), number(figure.value), number(figure.low), number(figure.high));
  }
  return html + "</table></div>\n";
}

/// Share that is right over confidence, and the line on which both are equal.
std::string reliability_chart(const SureRecord& sure) {
  ChartLine line = {"right", {}, {}, 0, false};
  ChartLine low = {"95 % from", {}, {}, 1, true}, high = {"95 % to", {}, {}, 1, true};
  for (const ReliabilityPoint& point : sure.reliability) {
    line.x.push_back(point.confidence);
    line.y.push_back(point.right);
    low.x.push_back(point.confidence);
    low.y.push_back(point.right_low);
    high.x.push_back(point.confidence);
    high.y.push_back(point.right_high);
  }
  Chart chart;
  chart.title = "Reliability";
  chart.x_label = "confidence";
  chart.y_label = "share that is right";
  chart.y_min = 0;
  chart.y_max = 1;
  chart.lines = {{"as it should be", {0, 1}, {0, 1}, 2, true}, line, low, high};
  return "<div class=\"grid-of-charts\">" + svg_chart(chart) + "</div>\n";
}

std::string thresholds_table(const SureRecord& sure) {
  std::string html =
      "<details><summary>Thresholds with the best F1 on these images</summary><table><tr><th>label</th><th "
      "class=\"n\">threshold</th><th class=\"n\">F1</th><th class=\"n\">F1 as it was</th></tr>\n";
  for (size_t i = 0; i < std::min(kShownThresholds, sure.thresholds.size()); ++i) {
    const ThresholdRow& row = sure.thresholds[i];
    html += format("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                   escape_html(row.label), number(row.threshold), number(row.f1), number(row.f1_now));
  }
  return html + "</table></details>\n";
}

}  // namespace

std::string certainty_section(const std::vector<RunRecord>& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    const SureRecord& sure = runs[i].sure;
    if (sure.images == 0) continue;
    if (runs.size() > 1) html += "<p>" + run_label(runs, i) + "</p>";
    html += figures_table(sure, sure.figures, format("on {} images", core::count_text(sure.images)));
    if (!sure.better.empty()) {
      html += figures_table(sure, sure.better, format("more than {}, on the same images", escape_html(sure.against)));
    }
    if (!sure.reliability.empty()) {
      html += format(
          "<p>Expected calibration error {:.2f} points; a network that is right exactly as often as it says shows up "
          "to "
          "{:.2f}.</p>\n",
          100 * sure.ece, 100 * sure.chance_ece);
      html += reliability_chart(sure);
    }
    if (!sure.thresholds.empty()) html += thresholds_table(sure);
  }
  return html.empty() ? "" : "<h2>How sure the evaluation is</h2>" + html;
}

}  // namespace stoker::observe
