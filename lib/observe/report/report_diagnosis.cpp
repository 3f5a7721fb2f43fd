// SPDX-License-Identifier: Apache-2.0
// The sections of report.html that say what limited a run, and what it was most wrong about.
#include "core/format.h"
#include "observe/diagnosis/time_figures.h"
#include "observe/report/html.h"
#include "observe/report/report_page.h"

namespace stoker::observe {
namespace {

using core::format;

std::string gain_text(const DiagnosisRow& row) {
  return row.gain_percent > 0 ? format("{:.0f}% more images/s", row.gain_percent) : "-";
}

std::string verdict(const DiagnosisRow& row) {
  std::string html = format("<p class=\"verdict\"><b>{}</b>", escape_html(row.verdict));
  if (!row.advice.empty()) html += format(": <code>{}</code>, predicted {}", escape_html(row.advice), gain_text(row));
  return html + format("<br><span class=\"faint\">{}</span></p>\n", escape_html(row.evidence));
}

std::string history(const std::vector<DiagnosisRow>& rows) {
  std::string html =
      "<details><summary>Verdicts over the run</summary><div class=\"scroll\"><table><tr><th "
      "class=\"n\">epochs"
      "</th><th>verdict</th><th>advice</th><th>predicted</th></tr>\n";
  for (const DiagnosisRow& row : rows) {
    html += format("<tr><td class=\"n\">{:.2f}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", row.epochs,
                   escape_html(row.verdict), escape_html(row.advice), gain_text(row));
  }
  return html + "</table></div></details>\n";
}

}  // namespace

std::string diagnosis_section(const std::vector<RunRecord>& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::vector<DiagnosisRow>& rows = runs[i].diagnoses;
    if (rows.empty()) continue;
    if (runs.size() > 1) html += "<p>" + run_label(runs, i) + "</p>";
    html += verdict(rows.back());
    if (rows.size() > 1) html += history(rows);
  }
  return html.empty() ? "" : "<h2>What limits the run</h2>" + html;
}

std::string worst_section(const std::vector<RunRecord>& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].worst.empty()) continue;
    if (runs.size() > 1) html += "<p>" + run_label(runs, i) + "</p>";
    html += "<div class=\"pictures\">";
    for (const WorstRow& row : runs[i].worst) {
      html += format(
          "<figure><img alt=\"\" src=\"data:image/jpeg;base64,{}\">is <b>{}</b><br>said <b>{}</b><br>"
          "<span class=\"faint\">{}</span></figure>\n",
          row.jpeg, escape_html(row.truth), escape_html(row.predicted), escape_html(row.name));
    }
    html += "</div>\n";
  }
  return html.empty() ? "" : "<h2>Worst predictions of the best evaluation</h2>" + html;
}

}  // namespace stoker::observe
