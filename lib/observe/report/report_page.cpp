// SPDX-License-Identifier: Apache-2.0
#include "observe/report/report_page.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/format.h"
#include "observe/report/html.h"
#include "observe/report/page.h"

namespace stoker::observe {
namespace {

using core::format;

const Curve& curve_of(const Curves& curves, const std::string& name) {
  static const Curve kNone;
  const auto found = curves.find(name);
  return found == curves.end() ? kNone : found->second;
}

double sum_of(const Curve& curve) { return std::accumulate(curve.y.begin(), curve.y.end(), 0.0); }

std::string mean_text(const Curve& curve, double scale, const char* unit) {
  if (curve.y.empty()) return "n/a";
  return format("{:.4g}{}", scale * sum_of(curve) / static_cast<double>(curve.y.size()), unit);
}

std::string highest_bytes_text(const Curve& curve) {
  return curve.y.empty() ? "n/a" : core::bytes_text(*std::max_element(curve.y.begin(), curve.y.end()));
}

/// The row of the best epoch; nullptr when none was evaluated.
const std::vector<std::string>* best_row(const RunRecord& run) {
  const auto column = std::find(run.epoch_columns.begin(), run.epoch_columns.end(), "best");
  if (column == run.epoch_columns.end()) return nullptr;
  const auto index = static_cast<size_t>(column - run.epoch_columns.begin());
  const std::vector<std::string>* best = nullptr;
  for (const auto& row : run.epoch_rows) {
    if (row[index] == "1") best = &row;
  }
  return best;
}

std::string cell_of(const RunRecord& run, const std::vector<std::string>* row, const std::string& name) {
  const auto column = std::find(run.epoch_columns.begin(), run.epoch_columns.end(), name);
  if (!row || column == run.epoch_columns.end()) return "n/a";
  const std::string& cell = (*row)[static_cast<size_t>(column - run.epoch_columns.begin())];
  return cell.empty() ? "n/a" : cell;
}

std::string best_epoch_text(const RunRecord& run) { return cell_of(run, best_row(run), "epoch"); }

std::string last_cell(const RunRecord& run, const std::string& name) {
  return cell_of(run, run.epoch_rows.empty() ? nullptr : &run.epoch_rows.back(), name);
}

std::string time_text(const RunRecord& run) {
  const double seconds =
      sum_of(curve_of(run.by_epoch, "train_seconds")) + sum_of(curve_of(run.by_epoch, "eval_seconds"));
  return seconds > 0 ? core::duration_text(seconds) : "n/a";
}

/// Columns of any run that begin with "eval_" and are figures of quality, not clocks.
std::vector<std::string> evaluated_columns(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    for (const std::string& name : run.epoch_columns) {
      const bool wanted = name.rfind("eval_", 0) == 0 && name != "eval_seconds";
      if (wanted && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

using FactOf = std::function<std::string(const RunRecord&)>;

std::string heading_row(const std::vector<RunRecord>& runs) {
  if (runs.size() == 1) return "";
  std::string html = "<tr><th></th>";
  for (size_t i = 0; i < runs.size(); ++i) html += "<th>" + run_label(runs, i) + "</th>";
  return html + "</tr>\n";
}

std::string fact_row(const std::vector<RunRecord>& runs, const std::string& name, const FactOf& fact) {
  std::string html = "<tr><th>" + escape_html(name) + "</th>";
  for (const RunRecord& run : runs) html += "<td>" + escape_html(fact(run)) + "</td>";
  return html + "</tr>\n";
}

std::string batch_text(const RunRecord& run) {
  const std::string batch = run.option("batch-size"), steps = run.option("accumulation-steps");
  return batch.empty() ? "n/a" : steps.empty() || steps == "1" ? batch : batch + " x " + steps;
}

std::string or_unknown(const std::string& text) { return text.empty() ? "n/a" : text; }

}  // namespace

int run_colour(size_t index) { return static_cast<int>(index % 6); }

std::string run_label(const std::vector<RunRecord>& runs, size_t index) {
  const std::string path = escape_html(runs[index].path);
  return runs.size() == 1 ? path : format("<span class=\"swatch c{}\"></span>{}", run_colour(index), path);
}

std::string overview_section(const std::vector<RunRecord>& runs) {
  std::string rows = heading_row(runs);
  const auto add = [&](const std::string& name, const FactOf& fact) { rows += fact_row(runs, name, fact); };
  add("state", [](const RunRecord& run) { return or_unknown(run.state); });
  add("started (UTC)", [](const RunRecord& run) { return or_unknown(run.started); });
  add("resumes", [](const RunRecord& run) { return format("{}", run.resumes); });
  add("libraries", [](const RunRecord& run) { return or_unknown(escape_html(run.backend)); });
  add("data", [](const RunRecord& run) { return or_unknown(run.option("data-dir")); });
  add("model", [](const RunRecord& run) { return or_unknown(run.option("model")); });
  add("images per update", batch_text);
  add("epochs done", [](const RunRecord& run) { return format("{}", run.epoch_rows.size()); });
  add("updates", [](const RunRecord& run) { return last_cell(run, "updates"); });
  add("last train_loss", [](const RunRecord& run) { return last_cell(run, "train_loss"); });
  add("best epoch", best_epoch_text);
  for (const std::string& name : evaluated_columns(runs)) {
    add("its " + name, [&](const RunRecord& run) { return cell_of(run, best_row(run), name); });
  }
  add("images/s (mean)",
      [](const RunRecord& run) { return mean_text(curve_of(run.by_epoch, "images_per_second"), 1, ""); });
  add("share of the peak, MFU (mean)",
      [](const RunRecord& run) { return mean_text(curve_of(run.by_epoch, "mfu"), 100, "%"); });
  add("waited for data (mean)",
      [](const RunRecord& run) { return mean_text(curve_of(run.by_epoch, "data_wait_share"), 100, "%"); });
  add("training and validation", time_text);
  add("highest memory of the process",
      [](const RunRecord& run) { return highest_bytes_text(curve_of(run.by_report, "resources.resident_bytes")); });
  add("highest GPU memory", [](const RunRecord& run) {
    return highest_bytes_text(curve_of(run.by_report, "resources.gpu_memory_used_bytes"));
  });
  std::string notes;
  for (const RunRecord& run : runs) {
    if (run.damaged_lines == 0) continue;
    notes += format("<p class=\"faint\">{}: {} lines of metrics.jsonl could not be read and are left out.</p>",
                    escape_html(run.path), run.damaged_lines);
  }
  return "<h2>Overview</h2><div class=\"scroll\"><table>" + rows + "</table></div>" + notes;
}

std::string differences_section(const std::vector<RunRecord>& runs) {
  if (runs.size() < 2) return "";
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    for (const auto& [name, value] : run.options) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string rows;
  for (const std::string& name : names) {
    const bool differs = std::any_of(runs.begin(), runs.end(),
                                     [&](const RunRecord& run) { return run.option(name) != runs[0].option(name); });
    if (differs) rows += fact_row(runs, name, [&](const RunRecord& run) { return or_unknown(run.option(name)); });
  }
  return "<h2>Options that differ</h2>" +
         (rows.empty() ? "<p>All options are the same.</p>"
                       : "<div class=\"scroll\"><table>" + heading_row(runs) + rows + "</table></div>");
}

std::string options_section(const std::vector<RunRecord>& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].options.empty()) continue;
    html += "<details><summary>All options of " + run_label(runs, i) + "</summary><table>";
    for (const auto& [name, value] : runs[i].options) {
      html += format("<tr><th>{}</th><td><code>{}</code></td></tr>\n", escape_html(name), escape_html(value));
    }
    html += "</table></details>\n";
  }
  return html.empty() ? "" : "<h2>Options</h2>" + html;
}

std::string report_page(const std::vector<RunRecord>& runs, const std::string& made_by, const std::string& time) {
  const std::string title = runs.size() == 1 ? runs[0].path : format("{} runs", runs.size());
  const std::string body = differences_section(runs) + overview_section(runs) + diagnosis_section(runs) +
                           curves_section(runs) + time_section(runs) + resources_section(runs) + memory_section(runs) +
                           certainty_section(runs) + confusion_section(runs) + worst_section(runs) +
                           options_section(runs);
  return page_of(title, "Report by " + made_by, time, body);
}

}  // namespace stoker::observe
