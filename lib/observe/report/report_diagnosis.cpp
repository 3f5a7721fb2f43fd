// SPDX-License-Identifier: Apache-2.0
// The sections of report.html on what limited a run, and on its worst mistakes.
#include <algorithm>

#include "core/format.h"
#include "observe/diagnosis/time_figures.h"
#include "observe/report/html.h"
#include "observe/report/page.h"
#include "observe/report/report_page.h"

namespace stoker::observe {
namespace {

using core::format;

std::string gain_text(const DiagnosisRow& row) {
  return row.gain_percent > 0 ? format("{:.0f}% more images/s", row.gain_percent) : "";
}

std::string verdict(const DiagnosisRow& row, const std::string& of) {
  std::string html = format("<p class=\"verdict\"><b>{}</b>", escape_html(row.verdict));
  if (!row.advice.empty()) html += format(": <code>{}</code>", escape_html(row.advice));
  if (row.gain_percent > 0) html += ", predicted " + gain_text(row);
  if (!row.evidence.empty()) html += format("<br><span class=\"faint\">{}</span>", escape_html(row.evidence));
  return html + (of.empty() ? "" : "<br>" + of) + "</p>\n";
}

std::string history(const std::vector<DiagnosisRow>& rows) {
  std::string html =
      "<tr><th scope=\"col\" class=\"n\">epochs</th><th scope=\"col\">verdict</th><th scope=\"col\">advice</th><th "
      "scope=\"col\">predicted</th></tr>\n";
  for (const DiagnosisRow& row : rows) {
    html += format("<tr><td class=\"n\">{:.2f}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", row.epochs,
                   escape_html(row.verdict), escape_html(row.advice), gain_text(row));
  }
  return "<details><summary>Verdicts over the run</summary>" + table_of("Verdicts over the run", html) + "</details>\n";
}

/// Of several runs each kind of verdict once, with the evidence of the best run and the names of all.
std::string verdicts_of(const std::vector<RunRecord>& runs) {
  std::string html;
  std::vector<bool> is_done(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    if (is_done[i] || runs[i].diagnoses.empty()) continue;
    const DiagnosisRow& row = runs[i].diagnoses.back();
    std::string names;
    size_t count = 0;
    for (size_t k = i; k < runs.size(); ++k) {
      if (runs[k].diagnoses.empty() || runs[k].diagnoses.back().verdict != row.verdict) continue;
      is_done[k] = true;
      names += (count++ == 0 ? "" : ", ") + run_label(runs, k);
    }
    html += verdict(row, runs.size() == 1 ? "" : format("{} of {} runs: {}", count, runs.size(), names));
  }
  return html;
}

std::string pictures(const std::vector<PictureRow>& rows) {
  if (rows.empty()) return "";
  std::string html = "<div class=\"pictures\">";
  for (const PictureRow& row : rows) {
    const std::string truth = escape_html(row.truth), predicted = escape_html(row.predicted),
                      name = escape_html(row.name);
    html += format(
        "<figure><img alt=\"{2}: true {0}, predicted {1}\" src=\"data:image/jpeg;base64,{3}\">true <b>{0}</b><br>"
        "predicted <b{4}>{1}</b>{5}<br><span class=\"faint\">{6}</span></figure>\n",
        truth, predicted, name, row.jpeg, row.is_wrong ? " class=\"wrong\"" : "", row.is_wrong ? " (wrong)" : "",
        name.substr(name.rfind('/') + 1));
  }
  return html + "</div>\n";
}

}  // namespace

std::string diagnosis_section(const std::vector<RunRecord>& runs) {
  const bool has_history = runs.size() == 1 && runs[0].diagnoses.size() > 1;
  return section_of("What limits the run", verdicts_of(runs) + (has_history ? history(runs[0].diagnoses) : ""));
}

std::string worst_section(const std::vector<RunRecord>& runs) {
  return section_of("Worst mistakes", per_run(runs, [](const RunRecord& run) { return pictures(run.worst); }));
}

std::string ordinary_section(const std::vector<RunRecord>& runs) {
  const auto show = [](const RunRecord& run) {
    const std::string html = pictures(run.ordinary);
    return html.empty() ? ""
                        : "<p class=\"faint\">Evenly spaced in the validation split, in the best epoch.</p>\n" + html;
  };
  return section_of("Ordinary predictions", per_run(runs, show));
}

}  // namespace stoker::observe
