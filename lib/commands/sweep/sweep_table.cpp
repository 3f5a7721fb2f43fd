// SPDX-License-Identifier: Apache-2.0
// The table of a sweep: means with intervals, which differences are more than chance, and how many seeds would show
// one.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "commands/sweep/sweep_parts.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/text/columns.h"
#include "core/text/csv.h"
#include "statistics/paired.h"

namespace stoker::train {
namespace {

using core::format;
using statistics::RunMean;

constexpr double kAlpha = 0.05, kPower = 0.8;
constexpr int64_t kMostMoreSeeds = 100;  // more of them are not run to separate two recipes

struct Row {
  size_t recipe = 0;
  std::vector<double> values;  ///< metric of each unit; NaN: the run failed
  RunMean mean;
  double loss = 0;  ///< sum, then mean of its runs
  int64_t failed = 0;
  RunMean to_first;          ///< the first row less this one
  double p_value = 1;        ///< p-value of that difference, corrected
  std::string better_than;   ///< ranks
  int64_t seeds_needed = 0;  ///< in all; 0: not known
};

std::string range_text(const statistics::Interval& interval) {
  return std::isnan(interval.low) ? "-" : format("{:.5g} to {:.5g}", interval.low, interval.high);
}

/// Removes columns, from `first` on, in which each row behind the heading has "-".
void drop_empty_columns(std::vector<std::vector<std::string>>& lines, size_t first) {
  for (size_t column = lines[0].size(); column-- > first;) {
    if (std::any_of(lines.begin() + 1, lines.end(), [&](const auto& line) { return line[column] != "-"; })) continue;
    for (std::vector<std::string>& line : lines) line.erase(line.begin() + static_cast<std::ptrdiff_t>(column));
  }
}

class TableMaker {
 public:
  TableMaker(const Sweep& sweep, const std::vector<std::optional<PartResult>>& results,
             const std::vector<std::optional<Pooled>>& pooled)
      : sweep_(sweep), pooled_(pooled) {
    rows_.resize(sweep.recipes.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].recipe = i;
      rows_[i].values.assign(static_cast<size_t>(sweep.units()), std::nan(""));
    }
    for (size_t i = 0; i < results.size(); ++i) take(sweep.parts[i], results[i]);
    // Runs on folds share most of their training images.
    overlap_ = sweep.folds > 1 ? 1 / static_cast<double>(sweep.folds - 1) : 0;
    for (Row& row : rows_) {
      row.mean = statistics::mean_of_runs(row.values, overlap_);
      row.loss /= static_cast<double>(row.mean.runs);
    }
    sort();
    compare();
    keep_in_range();
  }

  SweepTable table() const {
    SweepTable table;
    table.metric = metric_;
    table.best = rows_[0].mean.mean;
    table.text = text();
    table.csv = csv();
    return table;
  }

 private:
  void take(const SweepPart& part, const std::optional<PartResult>& result) {
    Row& row = rows_[part.recipe];
    if (!result || result->metric.empty()) {
      ++row.failed;
      return;
    }
    if (!metric_.empty() && metric_ != result->metric) {
      throw core::Error(core::ErrorKind::config,
                        format("some runs are judged by {}, others by {}", metric_, result->metric),
                        "choose one --eval-metric for all");
    }
    metric_ = result->metric;
    lower_is_better_ = result->lower_is_better;
    row.values[static_cast<size_t>(part.unit)] = result->value;
    row.loss += result->loss;
  }

  /// The best mean first; those of which a run failed behind all others.
  void sort() {
    std::stable_sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) {
      const bool a_has_none = a.mean.runs == 0, b_has_none = b.mean.runs == 0;
      if (a_has_none != b_has_none) return b_has_none;
      if ((a.failed > 0) != (b.failed > 0)) return b.failed > 0;
      return stands_before({a.mean.mean, a.loss}, {b.mean.mean, b.loss}, lower_is_better_);
    });
  }

  void compare() {
    std::vector<double> p_values;
    std::vector<std::pair<size_t, size_t>> pairs;
    std::vector<bool> first_is_better;
    for (size_t a = 0; a < rows_.size(); ++a) {
      for (size_t b = a + 1; b < rows_.size(); ++b) {
        const RunMean difference = statistics::difference_of_runs(rows_[a].values, rows_[b].values, overlap_);
        if (a == 0) rows_[b].to_first = difference;
        if (difference.runs < 2) continue;  // nothing is tested
        pairs.emplace_back(a, b);
        p_values.push_back(difference.p_value);
        first_is_better.push_back((difference.mean > 0) != lower_is_better_);
      }
    }
    const std::vector<double> corrected = statistics::corrected_for_number(p_values);
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto [a, b] = pairs[i];
      if (a == 0) rows_[b].p_value = corrected[i];
      if (corrected[i] >= kAlpha) continue;
      const auto [better, worse] = first_is_better[i] ? std::pair(a, b) : std::pair(b, a);
      rows_[better].better_than += (rows_[better].better_than.empty() ? "" : " ") + std::to_string(worse + 1);
    }
    statistics::PowerSettings settings;
    settings.alpha = kAlpha / static_cast<double>(std::max<size_t>(pairs.size(), 1));
    settings.power = kPower;
    settings.overlap = overlap_;
    settings.step = std::max<int64_t>(sweep_.folds, 1);
    settings.most = (sweep_.seeds + kMostMoreSeeds) * settings.step;
    for (size_t i = 1; i < rows_.size(); ++i) {
      rows_[i].seeds_needed = statistics::runs_to_find(rows_[i].to_first, settings) / settings.step;
    }
    comparisons_ = pairs.size();
    power_ = settings;
  }

  /// Student's intervals have no bounds; a percentage has.
  void keep_in_range() {
    for (const auto& [name, metric] : config::eval_metric_choices()) {
      if (name != metric_) continue;
      const auto [least, greatest] = config::range_of(metric);
      const auto clip = [](statistics::Interval& interval, double low, double high) {
        interval = {std::max(interval.low, low), std::min(interval.high, high)};
      };
      for (Row& row : rows_) {
        clip(row.mean.interval, least, greatest);
        clip(row.to_first.interval, least - greatest, greatest - least);
      }
    }
  }

  /// The metric over all samples of a row's folds; nothing: it failed, or is not known of the task.
  const statistics::MetricEstimate* pooled_metric(const Row& row) const {
    if (pooled_.empty() || !pooled_[row.recipe]) return nullptr;
    for (const statistics::MetricEstimate& metric : pooled_[row.recipe]->metrics) {
      if (metric.name == metric_) return &metric;
    }
    return nullptr;
  }

  std::string csv() const {
    std::vector<std::string> names = {"rank"};
    for (const auto& [name, value] : sweep_.recipes[0]) names.push_back(name);
    for (const char* const name : {"runs", "failed", "metric", "mean", "low", "high", "behind_first", "behind_low",
                                   "behind_high", "p", "better_than", "seeds_needed"}) {
      names.emplace_back(name);
    }
    if (!pooled_.empty()) names.insert(names.end(), {"pooled", "pooled_low", "pooled_high", "images"});
    std::string text = core::csv_row(names) + "\n";
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      std::vector<std::string> cells = {std::to_string(i + 1)};
      for (const auto& [name, value] : sweep_.recipes[row.recipe]) cells.push_back(value);
      const RunMean& mean = row.mean;
      for (const std::string& cell :
           {std::to_string(mean.runs), std::to_string(row.failed), metric_, number_cell(mean.mean),
            number_cell(mean.interval.low), number_cell(mean.interval.high)}) {
        cells.push_back(cell);
      }
      const bool is_compared = i > 0 && row.to_first.runs > 0;
      for (const double value :
           {row.to_first.mean, row.to_first.interval.low, row.to_first.interval.high, row.p_value}) {
        cells.push_back(is_compared ? number_cell(value) : "");
      }
      cells.push_back(row.better_than);
      cells.push_back(row.seeds_needed > 0 ? std::to_string(row.seeds_needed) : "");
      if (!pooled_.empty()) {
        const statistics::MetricEstimate* const metric = pooled_metric(row);
        for (const double value : {metric ? metric->value : std::nan(""), metric ? metric->interval.low : std::nan(""),
                                   metric ? metric->interval.high : std::nan("")}) {
          cells.push_back(number_cell(value));
        }
        const auto& pooled = pooled_[row.recipe];
        cells.push_back(pooled ? std::to_string(pooled->samples) : "");
      }
      text += core::csv_row(cells) + "\n";
    }
    return text;
  }

  std::string text() const {
    std::vector<std::vector<std::string>> lines = {{"rank"}};
    for (const auto& [name, value] : sweep_.recipes[0]) lines[0].push_back(name);
    const size_t first_number = lines[0].size();
    for (const std::string& name : {std::string("runs"), metric_, std::string("95 % interval"),
                                    std::string("behind first"), std::string("p"), std::string("better than")}) {
      lines[0].push_back(name);
    }
    if (!pooled_.empty()) lines[0].insert(lines[0].end(), {"all images", "95 % interval"});
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      std::vector<std::string> line = {std::to_string(i + 1)};
      for (const auto& [name, value] : sweep_.recipes[row.recipe]) line.push_back(core::printable(value));
      const int64_t runs = row.mean.runs;
      line.push_back(row.failed == 0 ? std::to_string(runs) : format("{} of {}", runs, runs + row.failed));
      line.push_back(runs == 0 ? "failed" : format("{:.5g}", row.mean.mean));
      line.push_back(range_text(row.mean.interval));
      const bool is_compared = i > 0 && row.to_first.runs > 0;
      line.push_back(is_compared ? format("{:.4g}", row.to_first.mean) : "-");
      line.push_back(is_compared && row.to_first.runs > 1 ? format("{:.3f}", row.p_value) : "-");
      line.push_back(row.better_than.empty() ? "-" : row.better_than);
      if (!pooled_.empty()) {
        const statistics::MetricEstimate* const metric = pooled_metric(row);
        line.push_back(metric == nullptr ? "-" : format("{:.5g}", metric->value));
        line.push_back(metric == nullptr ? "-" : range_text(metric->interval));
      }
      lines.push_back(line);
    }
    if (sweep_.units() == 1) drop_empty_columns(lines, first_number);  // nothing is tested
    std::string text;
    for (const std::string& line : core::aligned_rows(lines, first_number)) text += line + "\n";
    return text + verdict();
  }

  std::string verdict() const {
    std::string text;
    const int64_t units = sweep_.units();
    if (rows_.size() > 1 && units > 1) {
      text += format("better than: more than chance at 5 %, by paired t-tests over {}, corrected for {} (Holm)\n",
                     sweep_.folds > 1 ? "seeds and folds" : "seeds",
                     core::counted(static_cast<int64_t>(comparisons_), "comparison"));
    } else if (rows_.size() > 1) {
      text += "one run of each: --seeds 3 shows which differences are more than chance\n";
    }
    if (!pooled_.empty()) {
      text += format(
          "all images: each by the network of a fold that was not trained on it{}; pooled.csv has all metrics, "
          "confusion*.csv the matrix\n",
          sweep_.seeds > 1 ? ", mean over seeds" : "");
    }
    if (rows_.size() < 2 || rows_[1].to_first.runs < 2) return text;
    const Row& second = rows_[1];
    if (second.p_value < kAlpha) return text + "the first is better than the second by more than chance\n";
    if (second.to_first.deviation <= 0 && second.seeds_needed == 0) {
      return text + "the best two: their results are the same in every run\n";
    }
    if (second.seeds_needed == 0) return text + inseparable_text(second.to_first);
    const int64_t more = std::max<int64_t>(second.seeds_needed - sweep_.seeds, 1);
    return text + format(
                      "the best two: {} more ({} in all) would separate them with 80 % power, if they differ by {:.3g} "
                      "as observed: --seeds {}\n",
                      core::counted(more, "seed"), core::count_text(sweep_.seeds + more),
                      std::abs(second.to_first.mean), sweep_.seeds + more);
  }

  /// More seeds than anybody runs would be needed: which difference fewer could find.
  std::string inseparable_text(const RunMean& difference) const {
    const auto found_by = [&](int64_t more) {
      return statistics::difference_to_find(difference, (sweep_.seeds + more) * power_.step, power_);
    };
    return format(
        "the best two cannot be separated at a sensible cost: they differ by {:.3g}, and more than {} more seeds would "
        "be "
        "needed; 10 more find a difference of {:.3g} with 80 % power, 30 more one of {:.3g}\n",
        std::abs(difference.mean), kMostMoreSeeds, found_by(10), found_by(30));
  }

  const Sweep& sweep_;
  const std::vector<std::optional<Pooled>>& pooled_;  ///< pooled folds of each recipe; empty: there are no folds
  std::vector<Row> rows_;
  std::string metric_;
  bool lower_is_better_ = false;
  double overlap_ = 0;
  statistics::PowerSettings power_;  ///< settings for differences between two rows
  size_t comparisons_ = 0;
};

}  // namespace

std::string number_cell(double value) { return std::isnan(value) ? "" : format("{:.6g}", value); }

SweepTable table_of(const Sweep& sweep, const std::vector<std::optional<PartResult>>& results,
                    const std::vector<std::optional<Pooled>>& pooled) {
  return TableMaker(sweep, results, pooled).table();
}

}  // namespace stoker::train
