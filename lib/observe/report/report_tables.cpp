// SPDX-License-Identifier: Apache-2.0
// The sections of report.html that are bars and tables: where the time went, and which classes were mistaken.
#include <algorithm>
#include <numeric>

#include "core/format.h"
#include "observe/diagnosis/time_figures.h"
#include "observe/report/page.h"
#include "observe/report/report_page.h"

namespace stoker::observe {
namespace {

using core::format;

constexpr size_t kMaxMatrixClasses = 24;  // more do not fit a screen
constexpr size_t kMaxMistakes = 20;

struct Share {
  std::string name;
  double seconds = 0;
};

double last_of(const Curves& curves, const std::string& name) {
  const auto found = curves.find(name);
  return found == curves.end() || found->second.y.empty() ? 0 : found->second.y.back();
}

/// Sums over all epochs in summary.csv.
std::vector<Share> training_time(const RunRecord& run) {
  double waited = 0, trained = 0, evaluated = 0;
  const auto cells = [&](const char* name) {
    const auto found = run.by_epoch.find(name);
    return found == run.by_epoch.end() ? std::vector<double>() : found->second.y;
  };
  const std::vector<double> seconds = cells("train_seconds"), shares = cells("data_wait_share");
  for (size_t i = 0; i < seconds.size(); ++i) {
    trained += seconds[i];
    if (i < shares.size()) waited += seconds[i] * shares[i];
  }
  for (const double value : cells("eval_seconds")) evaluated += value;
  if (trained <= 0) return {};
  return {{"training, computing", std::max(0.0, trained - waited)},
          {"training, waiting for data", waited},
          {"validation", evaluated},
          {"saving checkpoints", run.checkpoint_seconds}};
}

/// For the last process of the run, summed over its workers.
std::vector<Share> worker_time(const RunRecord& run) {
  std::vector<Share> shares;
  for (const auto& [field, name] :
       {std::pair("read", "reading files"), std::pair("decode", "decoding"),
        std::pair("resize", "cropping and resizing"), std::pair("augment", "augmenting"),
        std::pair("write", "writing into the batch"), std::pair("worker_idle", "idle: batches are ready")}) {
    shares.push_back({name, last_of(run.by_report, format("loader.{}_seconds", field))});
  }
  const bool known = std::any_of(shares.begin(), shares.end(), [](const Share& share) { return share.seconds > 0; });
  return known ? shares : std::vector<Share>();
}

std::string titled(const std::string& title, const std::string& html) {
  return format("<figure><figcaption>{}</figcaption>{}</figure>\n", title, html);
}

std::string bar(const std::string& title, const std::vector<Share>& shares) {
  if (shares.empty()) return "";
  double total = 0;
  for (const Share& share : shares) total += share.seconds;
  if (total <= 0) return "";
  std::string parts, legend;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double percent = 100 * shares[i].seconds / total;
    parts += format("<i class=\"c{}\" style=\"width:{:.3f}%\"></i>", i % 6, percent);
    legend += format(
        "<li><span class=\"swatch c{}\"></span>{} <b>{:.1f}%</b> {}</li>", i % 6, escape_html(shares[i].name), percent,
        shares[i].seconds < 1 ? short_seconds_text(shares[i].seconds) : core::duration_text(shares[i].seconds));
  }
  return titled(title,
                format("<div class=\"bar\" aria-hidden=\"true\">{}</div><ul class=\"legend\">{}</ul>", parts, legend));
}

std::string matrix(const ConfusionTable& table) {
  std::string html = "<tr><th scope=\"col\">true \\ predicted</th>";
  for (const std::string& name : table.class_names) html += "<th scope=\"col\">" + escape_html(name) + "</th>";
  html += "</tr>\n";
  for (size_t truth = 0; truth < table.counts.size(); ++truth) {
    const auto& row = table.counts[truth];
    const auto images = static_cast<double>(std::accumulate(row.begin(), row.end(), int64_t{0}));
    html += "<tr><th scope=\"row\">" + escape_html(table.class_names[truth]) + "</th>";
    for (const int64_t count : row) {
      const double share = images > 0 ? static_cast<double>(count) / images : 0;
      html += format("<td style=\"background:rgba(var(--heat),{:.3f})\">{}</td>", 0.45 * share,
                     count > 0 ? std::to_string(count) : "");
    }
    html += "</tr>\n";
  }
  return table_of("Confusion matrix: true classes down, predicted ones across", html, "matrix");
}

/// The recall, precision and F1 of each class, the lowest F1 first. F1 = 2 TP / (2 TP + FP + FN); a class that is
/// neither true nor predicted anywhere is left out.
std::string classes(const ConfusionTable& table) {
  struct Class {
    double f1;
    size_t index;
    int64_t images, predicted, right;
  };
  std::vector<Class> rows;
  for (size_t i = 0; i < table.counts.size(); ++i) {
    const auto& row = table.counts[i];
    const int64_t images = std::accumulate(row.begin(), row.end(), int64_t{0}), right = row[i];
    int64_t predicted = 0;
    for (const auto& other : table.counts) predicted += other[i];
    if (images + predicted == 0) continue;
    rows.push_back(
        {2.0 * static_cast<double>(right) / static_cast<double>(images + predicted), i, images, predicted, right});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Class& a, const Class& b) { return a.f1 < b.f1; });
  const size_t left_out = rows.size() > kMaxMatrixClasses ? rows.size() - kMaxMatrixClasses : 0;
  rows.resize(rows.size() - left_out);
  std::string html =
      "<tr><th scope=\"col\">class</th><th scope=\"col\" class=\"n\">images</th><th scope=\"col\" "
      "class=\"n\">recall</th><th scope=\"col\" class=\"n\">precision</th><th scope=\"col\" "
      "class=\"n\">F1</th></tr>\n";
  const auto percent = [](int64_t part, int64_t whole) {
    return whole > 0 ? format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole)) : "";
  };
  for (const Class& row : rows) {
    html += format(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{:.1f} %</td></tr>\n",
        escape_html(table.class_names[row.index]), core::count_text(row.images), percent(row.right, row.images),
        percent(row.right, row.predicted), 100 * row.f1);
  }
  const std::string title = left_out > 0
                                ? format("The {} classes of lowest F1, of {}", rows.size(), rows.size() + left_out)
                                : "Classes, the lowest F1 first";
  return rows.empty() ? "" : titled(title, table_of(title, html));
}

/// The most frequent wrong pairs.
std::string mistakes(const ConfusionTable& table) {
  struct Mistake {
    int64_t count;
    size_t truth, predicted;
  };
  std::vector<Mistake> wrong;
  for (size_t truth = 0; truth < table.counts.size(); ++truth) {
    for (size_t predicted = 0; predicted < table.counts[truth].size(); ++predicted) {
      const int64_t count = table.counts[truth][predicted];
      if (truth != predicted && count > 0) wrong.push_back({count, truth, predicted});
    }
  }
  std::stable_sort(wrong.begin(), wrong.end(), [](const Mistake& a, const Mistake& b) { return a.count > b.count; });
  if (wrong.size() > kMaxMistakes) wrong.resize(kMaxMistakes);
  std::string html =
      "<tr><th scope=\"col\">class</th><th scope=\"col\">predicted as</th><th scope=\"col\" "
      "class=\"n\">images</th></tr>\n";
  for (const Mistake& mistake : wrong) {
    html += format("<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td></tr>\n",
                   escape_html(table.class_names[mistake.truth]), escape_html(table.class_names[mistake.predicted]),
                   core::count_text(mistake.count));
  }
  return wrong.empty() ? "" : table_of("Most frequent mistakes", html);
}

std::string times_table(const std::string& title, const std::vector<TimeRow>& rows) {
  std::string html;
  for (const TimeRow& row : rows) {
    if (row.max_seconds <= 0) continue;
    html += format("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                   escape_html(row.name), short_seconds_text(row.mean_seconds), short_seconds_text(row.p95_seconds),
                   short_seconds_text(row.max_seconds));
  }
  if (html.empty()) return "";
  return titled(title, format("<table><tr><td></td><th scope=\"col\" class=\"n\">mean</th><th scope=\"col\" "
                              "class=\"n\">95 %</th><th scope=\"col\" class=\"n\">max</th></tr>\n{}</table>",
                              html));
}

}  // namespace

std::string time_section(const std::vector<RunRecord>& runs) {
  const auto bars_of = [](const RunRecord& run) {
    std::vector<Share> parts;  // colours are few: what hardly took time is left out
    for (const TimeRow& row : run.step_times) {
      const bool is_part = row.name != "update" && row.name.rfind("device ", 0) != 0;
      if (is_part && row.mean_seconds > 0.004 * run.step_times[0].mean_seconds)
        parts.push_back({row.name, row.mean_seconds});
    }
    const std::string bars = bar("The run", training_time(run)) + bar("The loader's workers", worker_time(run)) +
                             bar("An update of the last epoch", parts) +
                             times_table("Time per update", run.step_times) +
                             times_table("Time per sample", run.sample_times);
    return bars.empty() ? "" : "<div class=\"grid-of-charts\">" + bars + "</div>\n";
  };
  return section_of("Where the time went", per_run(runs, bars_of));
}

std::string confusion_section(const std::vector<RunRecord>& runs) {
  const std::string html = per_run(runs, [](const RunRecord& run) -> std::string {
    const ConfusionTable& table = run.confusion;
    if (table.counts.empty()) return "";
    const std::string list = mistakes(table);
    if (table.class_names.size() > kMaxMatrixClasses)
      return classes(table) + (list.empty() ? "" : titled("Most frequent mistakes", list));
    return matrix(table) + classes(table) +
           (list.empty() ? "" : "<details><summary>Most frequent mistakes</summary>" + list + "</details>\n");
  });
  const bool says_how = html.empty() && runs.size() == 1 && runs[0].sure.images == 0 && !runs[0].epoch_rows.empty();
  if (!says_how) return section_of("Confusion matrix", html);
  return section_of("Evaluation",
                    format("<p class=\"faint\">Confusion matrix or predicted against true, reliability and thresholds "
                           "follow from <code>train eval {0} --output {0}/eval</code>.</p>\n",
                           escape_html(runs[0].path)));
}

// The section of report.html that holds the memory plan against what happened.

namespace {

using core::format;

std::string bytes_or_nothing(double bytes) { return bytes > 0 ? core::bytes_text(bytes) : ""; }

/// "+3.1 %": how far what was observed lies above what was predicted.
std::string difference_text(const MemoryForecast& memory) {
  if (memory.predicted_bytes <= 0 || memory.observed_bytes <= 0) return "";
  return format("{:+.1f} %", 100 * (memory.observed_bytes / memory.predicted_bytes - 1));
}

/// Observed values exist once a run has ended: without them there are no columns for them.
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

// The sections of report.html on what limited a run, and on its worst mistakes.

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
      "<tr><th scope=\"col\" class=\"n\">epochs</th><th scope=\"col\">diagnosis</th><th scope=\"col\">advice</th><th "
      "scope=\"col\">predicted</th></tr>\n";
  for (const DiagnosisRow& row : rows) {
    html += format("<tr><td class=\"n\">{:.4g}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", row.epochs,
                   escape_html(row.verdict), escape_html(row.advice), gain_text(row));
  }
  return "<details><summary>Diagnoses over the run</summary>" + table_of("Diagnoses over the run", html) +
         "</details>\n";
}

/// For several runs each kind of verdict once, with the evidence of the best run and the names of all.
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
    const std::string heat = row.heat.empty() ? ""
                                              : format(
                                                    "<img alt=\"{}: red is where the picture speaks for {}\" "
                                                    "src=\"data:image/jpeg;base64,{}\">",
                                                    name, predicted, row.heat);
    html += format(
        "<figure><img alt=\"{2}: true {0}, predicted {1}\" src=\"data:image/jpeg;base64,{3}\">{7}true <b>{0}</b><br>"
        "predicted <b{4}>{1}</b>{5}<br><span class=\"faint\">{6}</span></figure>\n",
        truth, predicted, name, row.jpeg, row.is_wrong ? " class=\"wrong\"" : "", row.is_wrong ? " (wrong)" : "",
        name.substr(name.rfind('/') + 1), heat);
  }
  return html + "</div>\n";
}

}  // namespace

std::string diagnosis_section(const std::vector<RunRecord>& runs) {
  const bool has_history = runs.size() == 1 && runs[0].diagnoses.size() > 1;
  return section_of("What limits the run", verdicts_of(runs) + (has_history ? history(runs[0].diagnoses) : ""));
}

std::string worst_section(const std::vector<RunRecord>& runs) {
  return section_of("Largest losses", per_run(runs, [](const RunRecord& run) { return pictures(run.worst); }));
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
