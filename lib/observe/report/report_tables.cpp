// SPDX-License-Identifier: Apache-2.0
// The sections of report.html that are bars and tables: where the time went, and which classes were mistaken.
#include <algorithm>
#include <numeric>

#include "core/format.h"
#include "observe/diagnosis/time_figures.h"
#include "observe/report/html.h"
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

/// Of all epochs in summary.csv.
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

/// Of the last process of the run, summed over its workers.
std::vector<Share> worker_time(const RunRecord& run) {
  std::vector<Share> shares;
  for (const auto& [field, name] :
       {std::pair("read", "reading files"), std::pair("decode", "decoding"),
        std::pair("resize", "cropping and resizing"), std::pair("augment", "augmenting"), std::pair("write", "copying"),
        std::pair("worker_idle", "idle: batches are ready")}) {
    shares.push_back({name, last_of(run.by_report, format("loader.{}_seconds", field))});
  }
  const bool known = std::any_of(shares.begin(), shares.end(), [](const Share& share) { return share.seconds > 0; });
  return known ? shares : std::vector<Share>();
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
  return format("<figure><figcaption>{}</figcaption><div class=\"bar\">{}</div><ul class=\"legend\">{}</ul></figure>\n",
                title, parts, legend);
}

std::string matrix(const ConfusionTable& table) {
  std::string html = "<div class=\"scroll\"><table class=\"matrix\"><tr><th>true \\ predicted</th>";
  for (const std::string& name : table.class_names) html += "<th>" + escape_html(name) + "</th>";
  html += "</tr>\n";
  for (size_t truth = 0; truth < table.counts.size(); ++truth) {
    const auto& row = table.counts[truth];
    const auto images = static_cast<double>(std::accumulate(row.begin(), row.end(), int64_t{0}));
    html += "<tr><th>" + escape_html(table.class_names[truth]) + "</th>";
    for (const int64_t count : row) {
      const double share = images > 0 ? static_cast<double>(count) / images : 0;
      html += format("<td style=\"background:rgba(var(--heat),{:.3f})\">{}</td>", 0.6 * share,
                     count > 0 ? std::to_string(count) : "");
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
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
      "<div class=\"scroll\"><table><tr><th>class</th><th>taken for</th><th class=\"n\">images</th></tr>\n";
  for (const Mistake& mistake : wrong) {
    html += format("<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td></tr>\n",
                   escape_html(table.class_names[mistake.truth]), escape_html(table.class_names[mistake.predicted]),
                   core::count_text(mistake.count));
  }
  return html + "</table></div>\n";
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
  return format(
      "<figure><figcaption>{}</figcaption><table><tr><th></th><th class=\"n\">mean</th><th class=\"n\">95%</th>"
      "<th class=\"n\">max</th></tr>\n{}</table></figure>\n",
      title, html);
}

}  // namespace

std::string time_section(const std::vector<RunRecord>& runs) {
  std::string bars;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string of = runs.size() > 1 ? ", " + run_label(runs, i) : "";
    bars += bar("The run" + of, training_time(runs[i]));
    bars += bar("The loader's workers" + of, worker_time(runs[i]));
    std::vector<Share> parts;  // colours are few: what hardly took time is left out
    for (const TimeRow& row : runs[i].step_times) {
      const bool is_part = row.name != "update" && row.name.rfind("device ", 0) != 0;
      if (is_part && row.mean_seconds > 0.004 * runs[i].step_times[0].mean_seconds)
        parts.push_back({row.name, row.mean_seconds});
    }
    bars += bar("An update of the last epoch" + of, parts);
    bars += times_table("Seconds per update" + of, runs[i].step_times);
    bars += times_table("Seconds per sample" + of, runs[i].sample_times);
  }
  return bars.empty() ? "" : "<h2>Where the time went</h2><div class=\"grid-of-charts\">" + bars + "</div>\n";
}

std::string confusion_section(const std::vector<RunRecord>& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    const ConfusionTable& table = runs[i].confusion;
    if (table.counts.empty()) continue;
    if (runs.size() > 1) html += "<p>" + run_label(runs, i) + "</p>";
    html += table.class_names.size() <= kMaxMatrixClasses ? matrix(table) : "";
    html += "<details><summary>Most frequent mistakes</summary>" + mistakes(table) + "</details>\n";
  }
  if (!html.empty()) return "<h2>Confusion matrix</h2>" + html;
  if (runs.size() > 1) return "";
  const std::string path = escape_html(runs[0].path);
  return format(
      "<h2>Confusion matrix</h2><p class=\"faint\">The run was not evaluated into its directory. <code>train eval {0} "
      "--output {0}/eval</code> does so; then make this page again.</p>\n",
      path);
}

}  // namespace stoker::observe
