// SPDX-License-Identifier: Apache-2.0
// The section of report.html that holds the memory plan against what happened.
#include "core/format.h"
#include "observe/report/html.h"
#include "observe/report/page.h"
#include "observe/report/report_page.h"

namespace stoker::observe {
namespace {

using core::format;

std::string bytes_or_nothing(double bytes) { return bytes > 0 ? core::bytes_text(bytes) : ""; }

/// "+3.1 %": how far what was observed lies above what was predicted.
std::string difference_text(const MemoryForecast& memory) {
  if (memory.predicted_bytes <= 0 || memory.observed_bytes <= 0) return "";
  return format("{:+.1f} %", 100 * (memory.observed_bytes / memory.predicted_bytes - 1));
}

/// What is observed is known once a run has ended: without it there are no columns for it.
std::string forecast_row(const std::string& of, const MemoryForecast& memory, bool has_observed) {
  std::string row = format("<tr><th scope=\"row\">{}{}</th><td class=\"n\">{}</td>", of, escape_html(memory.where),
                           bytes_or_nothing(memory.predicted_bytes));
  if (has_observed) {
    row += format("<td class=\"n\">{}</td><td class=\"n\">{}</td>", bytes_or_nothing(memory.observed_bytes),
                  difference_text(memory));
  }
  return row + "</tr>\n";
}

std::string parts_table(const MemoryForecast& memory) {
  std::string rows;
  for (const auto& [name, bytes] : memory.parts) {
    if (bytes <= 0) continue;
    rows += format("<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td></tr>\n", escape_html(name),
                   core::bytes_text(bytes));
  }
  if (rows.empty()) return "";
  return format("<details><summary>Parts of the plan for {}</summary><table>{}</table></details>\n",
                escape_html(memory.where), rows);
}

}  // namespace

std::string memory_section(const std::vector<RunRecord>& runs) {
  bool has_observed = false;
  for (const RunRecord& run : runs) {
    for (const MemoryForecast& memory : run.memory) has_observed = has_observed || memory.observed_bytes > 0;
  }
  std::string rows, parts;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const MemoryForecast& memory : runs[i].memory) {
      rows += forecast_row(runs.size() > 1 ? run_label(runs, i) + ", " : "", memory, has_observed);
      if (runs.size() == 1) parts += parts_table(memory);
    }
  }
  if (rows.empty()) return "";
  const std::string heading =
      std::string("<tr><th scope=\"col\">memory</th><th scope=\"col\" class=\"n\">predicted</th>") +
      (has_observed ? "<th scope=\"col\" class=\"n\">observed</th><th scope=\"col\" class=\"n\">difference</th>" : "") +
      "</tr>\n";
  return section_of(has_observed ? "Memory, predicted and observed" : "Memory, predicted",
                    table_of("Memory", heading + rows) + parts);
}

}  // namespace stoker::observe
