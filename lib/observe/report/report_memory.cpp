// SPDX-License-Identifier: Apache-2.0
// The section of report.html that holds the memory plan against what happened.
#include "core/format.h"
#include "observe/report/html.h"
#include "observe/report/report_page.h"

namespace stoker::observe {
namespace {

using core::format;

std::string bytes_or_unknown(double bytes) { return bytes > 0 ? core::bytes_text(bytes) : "n/a"; }

/// "+3.1 %": how far what was observed lies above what was predicted.
std::string difference_text(const MemoryForecast& memory) {
  if (memory.predicted_bytes <= 0 || memory.observed_bytes <= 0) return "n/a";
  return format("{:+.1f} %", 100 * (memory.observed_bytes / memory.predicted_bytes - 1));
}

std::string forecast_row(const std::string& of, const MemoryForecast& memory) {
  return format("<tr><td>{}{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n", of,
                escape_html(memory.where), bytes_or_unknown(memory.predicted_bytes),
                bytes_or_unknown(memory.observed_bytes), difference_text(memory));
}

std::string parts_table(const MemoryForecast& memory) {
  std::string rows;
  for (const auto& [name, bytes] : memory.parts) {
    rows += format("<tr><td>{}</td><td class=\"n\">{}</td></tr>\n", escape_html(name), bytes_or_unknown(bytes));
  }
  return format("<details><summary>Parts of the plan for {}</summary><table>{}</table></details>\n",
                escape_html(memory.where), rows);
}

}  // namespace

std::string memory_section(const std::vector<RunRecord>& runs) {
  std::string rows, parts;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const MemoryForecast& memory : runs[i].memory) {
      rows += forecast_row(runs.size() > 1 ? run_label(runs, i) + ", " : "", memory);
      if (runs.size() == 1) parts += parts_table(memory);
    }
  }
  if (rows.empty()) return "";
  return "<h2>Memory, predicted and observed</h2><div class=\"scroll\"><table><tr><th>memory</th>"
         "<th class=\"n\">predicted</th><th class=\"n\">observed</th><th class=\"n\">observed is</th></tr>\n" +
         rows + "</table></div>\n" + parts;
}

}  // namespace stoker::observe
