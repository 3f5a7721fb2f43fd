// SPDX-License-Identifier: Apache-2.0
// report.html as a whole, and its sections of facts: the outcome, what differs, how it ran, all options.
#include "observe/report/report_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "core/format.h"
#include "observe/report/page.h"
#include "observe/report/svg_chart.h"

namespace stoker::observe {
namespace {

using core::format;
using Runs = std::vector<RunRecord>;

constexpr size_t kColours = 6, kShownOptions = 6, kShownCharts = 12, kMaxNames = 12;

const Curve& curve_of(const Curves& curves, const std::string& name) {
  static const Curve kNone;
  const auto found = curves.find(name);
  return found == curves.end() ? kNone : found->second;
}

double sum_of(const Curve& curve) { return std::accumulate(curve.y.begin(), curve.y.end(), 0.0); }

std::string mean_text(const Curve& curve, double scale, const char* unit) {
  if (curve.y.empty()) return "";
  return format("{:.4g}{}", scale * sum_of(curve) / static_cast<double>(curve.y.size()), unit);
}

std::string highest_bytes_text(const Curve& curve) {
  return curve.y.empty() ? "" : core::bytes_text(*std::max_element(curve.y.begin(), curve.y.end()));
}

std::string cell_of(const RunRecord& run, const std::vector<std::string>& row, const std::string& name) {
  const auto column = std::find(run.epoch_columns.begin(), run.epoch_columns.end(), name);
  return column == run.epoch_columns.end() ? "" : row[static_cast<size_t>(column - run.epoch_columns.begin())];
}

std::string last_cell(const RunRecord& run, const std::string& name) {
  return run.epoch_rows.empty() ? "" : cell_of(run, run.epoch_rows.back(), name);
}

std::string time_text(const RunRecord& run) {
  const double seconds =
      sum_of(curve_of(run.by_epoch, "train_seconds")) + sum_of(curve_of(run.by_epoch, "eval_seconds"));
  return seconds > 0 ? core::duration_text(seconds) : "";
}

std::string batch_text(const RunRecord& run) {
  const std::string batch = run.option("batch-size"), steps = run.option("accumulation-steps");
  return batch.empty() || steps.empty() || steps == "1" ? batch : batch + " x " + steps;
}

std::string progress_text(const RunRecord& run) {
  const std::string planned = run.option("epochs");
  return format("{}{}", epochs_in(run), planned.empty() ? "" : " of " + planned);
}

/// A cell of summary.csv for people: "65.03 %".
std::string value_text(const std::string& cell, const std::string& metric) {
  if (cell.empty()) return "";
  return format("{:.5g}{}", std::atof(cell.c_str()), unit_of(metric) == "percent" ? " %" : "");
}

std::string result_text(const BestEpoch& best) { return value_text(format("{:.17g}", best.value), best.metric); }

/// Figures of quality in the best and the last epoch.
std::string result_table(const RunRecord& run) {
  const std::optional<BestEpoch> best = best_epoch(run);
  if (run.epoch_rows.empty()) return "";
  const std::vector<std::string>& last = run.epoch_rows.back();
  const std::string last_epoch = cell_of(run, last, "epoch");
  const bool has_two = best && best->row + 1 != run.epoch_rows.size();
  const std::vector<std::string>& first = best ? run.epoch_rows[best->row] : last;
  std::string rows = format("<tr><td></td><th scope=\"col\" class=\"n\">{} epoch, {}</th>", best ? "best" : "last",
                            escape_html(cell_of(run, first, "epoch")));
  if (has_two) rows += format("<th scope=\"col\" class=\"n\">last epoch, {}</th>", escape_html(last_epoch));
  rows += "</tr>\n";
  for (const std::string& column : run.epoch_columns) {
    const bool is_quality = column == "train_loss" || (column.rfind("eval_", 0) == 0 && column != "eval_seconds");
    if (!is_quality || is_trivial(run, column)) continue;
    const std::string metric = column == "train_loss" ? "training loss" : column.substr(5);
    const std::string name = metric == "loss" ? "validation loss" : metric;
    const std::string a = value_text(cell_of(run, first, column), metric),
                      b = value_text(cell_of(run, last, column), metric);
    if (a.empty() && (!has_two || b.empty())) continue;
    rows += format("<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td>", escape_html(name), a);
    rows += has_two ? format("<td class=\"n\">{}</td></tr>\n", b) : "</tr>\n";
  }
  return table_of("Results", rows);
}

/// One line on how far the run came and what it is best at.
std::string outcome_line(const RunRecord& run) {
  const std::optional<BestEpoch> best = best_epoch(run);
  std::string text = "<p>";
  if (best) text += format("<b>{} {}</b> in epoch {}. ", escape_html(best->metric), result_text(*best), best->epoch);
  text += run.state.empty() ? "The run has not begun to train." : "State: " + escape_html(run.state) + ".";
  return text + format(" Epochs: {}.", escape_html(progress_text(run))) + "</p>\n";
}

std::vector<const RunRecord*> pointers_to(const Runs& runs) {
  std::vector<const RunRecord*> pointers;
  for (const RunRecord& run : runs) pointers.push_back(&run);
  return pointers;
}

/// A row for each run, the best first, with the options in which they differ.
std::string runs_table(const Runs& runs) {
  std::vector<std::string> options = differing_options(pointers_to(runs));
  if (options.size() > kShownOptions) options.resize(kShownOptions);
  const std::optional<BestEpoch> first = best_epoch(runs[0]);
  const auto is_judged_alike = [&](const RunRecord& run) {
    const std::optional<BestEpoch> best = best_epoch(run);
    return !best || (first && best->metric == first->metric);
  };
  const bool one_metric = first && std::all_of(runs.begin(), runs.end(), is_judged_alike);
  std::string rows = "<tr><th scope=\"col\">run</th>";
  if (first) {
    rows += format("<th scope=\"col\" class=\"n\" aria-sort=\"{}\">{}</th><th scope=\"col\" class=\"n\">in epoch</th>",
                   first->lower_is_better ? "ascending" : "descending",
                   one_metric ? "best " + escape_html(first->metric) : "best");
  }
  for (const std::string& name : options) rows += "<th scope=\"col\">" + escape_html(name) + "</th>";
  rows += "<th scope=\"col\">state</th></tr>\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::optional<BestEpoch> best = best_epoch(runs[i]);
    rows += "<tr><th scope=\"row\">" + run_label(runs, i) + "</th>";
    if (first) {
      const std::string text = best ? (one_metric ? "" : escape_html(best->metric) + " ") + result_text(*best) : "";
      rows += format("<td class=\"n\">{}</td><td class=\"n\">{}</td>", text, best ? format("{}", best->epoch) : "");
    }
    for (const std::string& name : options) rows += "<td>" + escape_html(runs[i].option(name)) + "</td>";
    rows += "<td>" + escape_html(runs[i].state) + "</td></tr>\n";
  }
  return table_of("Runs, the best first", rows) + (options.empty() ? "<p>All options are the same.</p>\n" : "");
}

/// Every option whose value is not the same in all runs, derived ones as well.
std::string differences(const Runs& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    for (const auto& [name, value] : run.options) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string rows;
  for (const std::string& name : names) {
    if (std::all_of(runs.begin(), runs.end(),
                    [&](const auto& run) { return run.option(name) == runs[0].option(name); }))
      continue;
    rows += "<tr><th scope=\"row\">" + escape_html(name) + "</th>";
    for (const RunRecord& run : runs) rows += "<td>" + escape_html(run.option(name)) + "</td>";
    rows += "</tr>\n";
  }
  if (rows.empty()) return "";
  std::string heading = "<tr><td></td>";
  for (size_t i = 0; i < runs.size(); ++i) heading += "<th scope=\"col\">" + run_label(runs, i) + "</th>";
  return "<details><summary>All options that differ, with those that follow from others</summary>" +
         table_of("Options that differ", heading + "</tr>\n" + rows) + "</details>\n";
}

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// The metric of each run over one option: a number, or names in their order.
std::string option_chart(const Runs& runs, const std::string& option) {
  const std::string metric = best_epoch(runs[0])->metric;
  std::vector<std::string> names;
  std::vector<double> numbers;
  Chart chart;
  chart.title = metric + " over " + option;
  chart.x_label = option;
  chart.y_label = metric;
  if (unit_of(metric) != "value") chart.y_ceiling = unit_of(metric) == "percent" ? 100 : 1;
  bool all_numbers = true;
  for (const RunRecord& run : runs) {
    const std::optional<double> number = number_in(run.option(option));
    all_numbers = all_numbers && number;
    if (number) numbers.push_back(*number);
    names.push_back(run.option(option).empty() ? "(none)" : run.option(option));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (all_numbers) {
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    chart.x_is_logarithmic = *low > 0 && *high > 20 * *low;
    const double air = 0.06 * (*high - *low);
    chart.x_min = *low - air;
    chart.x_max = *high + air;
  } else if (names.size() > kMaxNames) {
    return "";  // as many as runs: nothing to see
  } else {
    chart.x_names = names;
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::optional<BestEpoch> best = best_epoch(runs[i]);
    if (!best || best->metric != metric) continue;
    const std::string value = runs[i].option(option).empty() ? "(none)" : runs[i].option(option);
    const double x = all_numbers ? *number_in(value)
                                 : static_cast<double>(std::find(names.begin(), names.end(), value) - names.begin());
    ChartLine point = {runs[i].path, {x}, {best->value}, run_colour(i), false};
    point.points_only = true;
    chart.lines.push_back(std::move(point));
  }
  return chart.lines.size() < 2 ? "" : svg_chart(chart);
}

using FactOf = std::function<std::string(const RunRecord&)>;
using Facts = std::vector<std::pair<std::string, FactOf>>;

/// Facts of one run below each other, of several a row for each run and what all share in front; those that no run has
/// are left out.
std::string facts_table(const Runs& runs, const std::string& label, const Facts& facts) {
  std::string rows;
  std::vector<const Facts::value_type*> known;
  for (const auto& fact : facts) {
    if (std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) { return !fact.second(run).empty(); }))
      known.push_back(&fact);
  }
  if (runs.size() == 1) {
    for (const auto* fact : known) {
      rows += "<tr><th scope=\"row\">" + escape_html(fact->first) + "</th><td>" + escape_html(fact->second(runs[0])) +
              "</td></tr>\n";
    }
    return rows.empty() ? "" : table_of(label, rows);
  }
  std::string shared;
  const auto is_shared = [&](const Facts::value_type* fact) {
    const std::string first = fact->second(runs[0]);
    if (std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) { return fact->second(run) != first; }))
      return false;
    shared += (shared.empty() ? "<p>In all runs: " : "; ") + escape_html(fact->first + " " + first);
    return true;
  };
  known.erase(std::remove_if(known.begin(), known.end(), is_shared), known.end());
  if (!shared.empty()) shared += ".</p>\n";
  rows = "<tr><th scope=\"col\">run</th>";
  for (const auto* fact : known) rows += "<th scope=\"col\">" + escape_html(fact->first) + "</th>";
  rows += "</tr>\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    rows += "<tr><th scope=\"row\">" + run_label(runs, i) + "</th>";
    for (const auto* fact : known) rows += "<td>" + escape_html(fact->second(runs[i])) + "</td>";
    rows += "</tr>\n";
  }
  return shared + (known.empty() ? "" : table_of(label, rows));
}

std::string left_out_note(const std::string& line) {
  return "<p class=\"faint\">" + escape_html(core::printable(line)) + "</p>\n";
}

std::string damage_note(const Runs& runs) {
  int64_t lines = 0, damaged = 0;
  for (const RunRecord& run : runs) {
    lines += run.damaged_lines;
    damaged += run.damaged_lines > 0 ? 1 : 0;
  }
  std::string html;
  for (const RunRecord& run : runs) {
    for (const std::string& line : run.left_out) html += left_out_note(line);
  }
  if (lines == 0) return html;
  return html + format("<p class=\"faint\">Lines of metrics.jsonl that could not be read and are left out: {}{}.</p>\n",
                       lines, runs.size() > 1 ? format(", in {} of {} runs", damaged, runs.size()) : "");
}

/// The best first; those without a result last.
void sort_by_result(Runs& runs) {
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunRecord& a, const RunRecord& b) { return is_better(best_epoch(a), best_epoch(b)); });
}

/// Names without the folder that all runs lie in.
void shorten_paths(Runs& runs) {
  const std::string& first = runs[0].path;
  size_t common = runs.size() > 1 ? first.rfind('/') : std::string::npos;
  for (const RunRecord& run : runs) {
    while (common != std::string::npos && run.path.compare(0, common + 1, first, 0, common + 1) != 0)
      common = common == 0 ? std::string::npos : first.rfind('/', common - 1);
  }
  if (common == std::string::npos) return;
  for (RunRecord& run : runs) run.path.erase(0, common + 1);
}

}  // namespace

int run_colour(size_t index) { return index < kColours ? static_cast<int>(index) : kFaintLine; }

std::string run_label(const Runs& runs, size_t index) {
  const std::string path = escape_html(runs[index].path);
  return runs.size() == 1 ? path : format("<span class=\"swatch c{}\"></span>{}", run_colour(index), path);
}

std::string per_run(const Runs& runs, const FactOf& show) {
  if (runs.size() == 1) return show(runs[0]);
  std::string html;
  size_t shown = 0;
  for (size_t i = 0; i < runs.size() && shown < kColours; ++i) {
    const std::string content = show(runs[i]);
    if (content.empty()) continue;
    html += format("<details{}><summary>{}</summary>{}</details>\n", shown++ == 0 ? " open" : "", run_label(runs, i),
                   content);
  }
  return html;
}

std::string unit_of(const std::string& metric) {
  for (const char* const name : {"top1", "top5", "accuracy", "exact_match"}) {
    if (metric == name) return "percent";
  }
  for (const char* const name :
       {"precision", "recall", "f1", "f1_micro", "f1_weighted", "balanced_accuracy", "roc_auc", "pr_auc", "r2"}) {
    if (metric == name) return "share";
  }
  return metric.find("percent") != std::string::npos ? "percent" : "value";
}

bool is_trivial(const RunRecord& run, const std::string& column) {
  if (column != "eval_top5") return false;
  return std::all_of(run.epoch_rows.begin(), run.epoch_rows.end(), [&](const std::vector<std::string>& row) {
    const std::string cell = cell_of(run, row, column);
    return cell.empty() || std::atof(cell.c_str()) >= 100;
  });
}

std::string outcome_section(const Runs& runs) {
  const std::string what =
      runs.size() == 1 ? outcome_line(runs[0]) + result_table(runs[0]) : runs_table(runs) + differences(runs);
  return section_of(runs.size() == 1 ? "Outcome" : "Runs", what + damage_note(runs));
}

std::string sweep_section(const Runs& runs) {
  if (runs.size() < 2 || !best_epoch(runs[0])) return "";
  std::string charts;
  size_t shown = 0;
  for (const std::string& option : differing_options(pointers_to(runs))) {
    if (shown == kShownCharts) break;
    if (option == "seed" || option == "val-split" || option == "data-dir") continue;  // they are not tuned
    const std::string chart = option_chart(runs, option);
    charts += chart;
    shown += chart.empty() ? 0 : 1;
  }
  if (charts.empty()) return "";
  return section_of("What the options did", "<div class=\"grid-of-charts\">" + charts + "</div>\n");
}

std::string facts_section(const Runs& runs) {
  const Facts facts = {
      {"started (UTC)", [](const RunRecord& run) { return run.started; }},
      {"resumes", [](const RunRecord& run) { return run.resumes == 0 ? "" : format("{}", run.resumes); }},
      {"training and validation", time_text},
      {"updates", [](const RunRecord& run) { return last_cell(run, "updates"); }},
      {"batch size", batch_text},
      {"images/s", [](const RunRecord& run) { return mean_text(curve_of(run.by_epoch, "images_per_second"), 1, ""); }},
      {"share of the peak (MFU)",
       [](const RunRecord& run) { return mean_text(curve_of(run.by_epoch, "mfu"), 100, " %"); }},
      {"waited for data",
       [](const RunRecord& run) { return mean_text(curve_of(run.by_epoch, "data_wait_share"), 100, " %"); }},
      {"peak memory",
       [](const RunRecord& run) { return highest_bytes_text(curve_of(run.by_report, "resources.resident_bytes")); }},
      {"peak GPU memory",
       [](const RunRecord& run) {
         return highest_bytes_text(curve_of(run.by_report, "resources.gpu_memory_used_bytes"));
       }},
      {"data", [](const RunRecord& run) { return run.option("data-dir"); }},
      {"model", [](const RunRecord& run) { return run.option("model"); }},
      {"libraries", [](const RunRecord& run) { return run.backend; }}};
  return section_of("How it ran", facts_table(runs, "How it ran", facts));
}

std::string options_section(const Runs& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].options.empty()) continue;
    std::string rows;
    for (const auto& [name, value] : runs[i].options) {
      rows +=
          format("<tr><th scope=\"row\">{}</th><td><code>{}</code></td></tr>\n", escape_html(name), escape_html(value));
    }
    html +=
        "<details><summary>All options of " + run_label(runs, i) + "</summary><table>" + rows + "</table></details>\n";
  }
  return section_of("Options", html);
}

std::string comparison_section(const SweepTables& tables) {
  if (tables.sweep.size() < 2) return "";
  const auto html_of = [](const char* label, const std::vector<std::vector<std::string>>& table) {
    std::string rows;
    for (const std::vector<std::string>& row : table) {
      const bool is_head = &row == &table.front();
      rows += "<tr>";
      for (std::string cell : row) {
        if (is_head) std::replace(cell.begin(), cell.end(), '_', ' ');
        rows += is_head ? "<th scope=\"col\">" + escape_html(cell) + "</th>" : "<td>" + escape_html(cell) + "</td>";
      }
      rows += "</tr>\n";
    }
    return table_of(label, rows);
  };
  std::string halving;
  if (tables.halving.size() > 1) {
    halving = "<details><summary>Halving: which combinations advanced after a share of their updates</summary>" +
              html_of("Halving", tables.halving) + "</details>\n";
  }
  for (const std::string& line : tables.left_out) halving += left_out_note(line);
  return section_of("Sweep", html_of("Sweep", tables.sweep) +
                                 "<p>Means over seeds and folds with their 95 % intervals. Better than: the ranks that "
                                 "are worse by more than chance, by paired t-tests, corrected for their number (Holm). "
                                 "Seeds needed: in all, to separate a row from the first with 80 % power.</p>\n" +
                                 halving);
}

std::string report_page(Runs runs, const std::string& made_by, const std::string& time, int reload_seconds,
                        const SweepTables& tables) {
  if (!tables.halving.empty()) {  // it stopped the runs: not something that was tried
    for (RunRecord& run : runs) {
      run.options.erase(std::remove_if(run.options.begin(), run.options.end(),
                                       [](const auto& option) { return option.first == "max-updates"; }),
                        run.options.end());
    }
  }
  const std::string title = runs.size() == 1 ? runs[0].path : format("{} runs", runs.size());
  if (runs.size() > 1) {
    sort_by_result(runs);
    shorten_paths(runs);
  }
  const std::string body = outcome_section(runs) + comparison_section(tables) + sweep_section(runs) +
                           curves_section(runs) + confusion_section(runs) + worst_section(runs) +
                           ordinary_section(runs) + certainty_section(runs) + threshold_section(runs) +
                           numbers_section(runs) + facts_section(runs) + diagnosis_section(runs) + time_section(runs) +
                           resources_section(runs) + memory_section(runs) + options_section(runs);
  return page_of(title, "Report by " + made_by, time, body, reload_seconds);
}

}  // namespace stoker::observe
