// SPDX-License-Identifier: Apache-2.0
#include "observe/runs/watch_view.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/format.h"

namespace stoker::observe {
namespace {

using core::format;

constexpr int kTwoCharts = 100;  // columns from which on charts stand side by side
constexpr int kMaxRows = 18;     // of a chart
constexpr int kLeastRows = 8;

const Curve* find_curve(const Curves& curves, const std::string& name) {
  const auto found = curves.find(name);
  return found == curves.end() || found->second.x.empty() ? nullptr : &found->second;
}

double last_of(const Curves& curves, const std::string& name, double otherwise) {
  const Curve* const curve = find_curve(curves, name);
  return curve == nullptr ? otherwise : curve->y.back();
}

/// Seconds until the planned epochs are done, at the speed of this process's last reports; < 0: unknown.
double seconds_left(const WatchedRun& run) {
  const Curve* const minutes = find_curve(run.record.by_minute, "updates");
  if (minutes == nullptr || minutes->x.size() < 2 || run.listed.epochs == 0) return -1;
  const size_t last = minutes->x.size() - 1, first = last > 20 ? last - 20 : 0;
  const double updates = minutes->y[last] - minutes->y[first], seconds = 60 * (minutes->x[last] - minutes->x[first]);
  const Curve* const epochs = find_curve(run.record.by_report, "updates");
  const double updates_per_epoch = epochs != nullptr && epochs->x.back() > 0 ? epochs->y.back() / epochs->x.back() : 0;
  if (updates <= 0 || updates_per_epoch <= 0) return -1;
  const double left = updates_per_epoch * static_cast<double>(run.listed.epochs) - minutes->y[last];
  return std::max(0.0, left * seconds / updates);
}

std::string status_line(const WatchedRun& run, char mark, bool marked) {
  const ListedRun& listed = run.listed;
  std::string text = marked ? format("{}  ", mark) : "";
  text += format("{}  {}", core::printable(listed.path),
                 listed.reason.empty() ? listed.state : listed.state + " (" + core::printable(listed.reason) + ")");
  text += listed.epochs > 0
              ? format("  epoch {}/{}", std::min(listed.epochs, listed.epochs_done + (has_ended(listed) ? 0 : 1)),
                       listed.epochs)
              : format("  epoch {}", listed.epochs_done);
  text += format("  update {}", core::count_text(listed.updates));
  if (!has_ended(listed)) {
    const double left = seconds_left(run);
    if (left >= 0) text += "  ETA " + core::duration_text(left);
    if (listed.images_per_second >= 0) {
      text += format("  {} images/s", core::count_text(static_cast<int64_t>(std::llround(listed.images_per_second))));
    }
    text += format("  lr {:.4g}", last_of(run.record.by_report, "lr", 0));
  }
  if (!listed.best_metric.empty()) {
    text += format("  best {} {:.5g} in epoch {}", listed.best_metric, listed.best_value, listed.best_epoch);
  }
  if (listed.age_seconds > 60 && !has_ended(listed)) {
    text += format("  silent for {}", core::duration_text(std::floor(listed.age_seconds)));
  }
  return text;
}

void add_line(const Curves& curves, const std::string& name, const std::string& label, Chart& chart) {
  if (const Curve* const curve = find_curve(curves, name)) {
    ChartLine line;
    line.label = label;
    line.x = curve->x;
    line.y = curve->y;
    chart.lines.push_back(std::move(line));
  } else {
    chart.lines.emplace_back();  // keeps its mark
  }
}

/// The first metric of the first run that has one.
std::string metric_of(const std::vector<WatchedRun>& runs) {
  for (const WatchedRun& run : runs) {
    for (const std::string& column : run.record.epoch_columns) {
      if (column.rfind("eval_", 0) == 0 && column != "eval_loss" && column != "eval_seconds") return column.substr(5);
    }
  }
  return "";
}

struct Charts {
  std::vector<Chart> charts;
  std::string marks;
};

/// Charts of one run: training and validation.
Charts charts_of(const WatchedRun& run) {
  Charts all;
  all.marks = "o.";
  Chart loss;
  loss.title = "loss";
  loss.x_label = "epochs";
  add_line(run.record.by_epoch, "eval_loss", "validation", loss);
  add_line(run.record.by_report, "train_loss", "training", loss);
  all.charts.push_back(loss);
  const std::string metric = metric_of({run});
  if (metric.empty()) return all;
  Chart score;
  score.title = metric;
  score.x_label = "epochs";
  add_line(run.record.by_epoch, "eval_" + metric, "validation", score);
  add_line(run.record.by_report, "train_" + metric, "training", score);
  all.charts.push_back(score);
  return all;
}

/// Charts of several runs: one line per run.
Charts charts_of(const std::vector<WatchedRun>& runs) {
  Charts all;
  all.marks = "abcdefghijklmnopqrstuvwxyz";
  for (const std::string& name : {std::string("loss"), metric_of(runs)}) {
    if (name.empty()) continue;
    Chart chart;
    chart.title = "validation " + name;
    chart.x_label = "epochs";
    for (const WatchedRun& run : runs) add_line(run.record.by_epoch, "eval_" + name, "", chart);
    all.charts.push_back(chart);
  }
  return all;
}

}  // namespace

bool has_ended(const ListedRun& run) { return run.state != "training"; }

std::vector<std::string> watch_view(const std::vector<WatchedRun>& runs, int columns, int rows) {
  const Charts charts = runs.size() == 1 ? charts_of(runs.front()) : charts_of(runs);
  std::vector<std::string> lines;
  for (size_t i = 0; i < runs.size(); ++i) {
    lines.push_back(status_line(runs[i], charts.marks[i % charts.marks.size()], runs.size() > 1));
  }
  const bool beside = columns >= kTwoCharts && charts.charts.size() > 1;
  const int across = beside ? (columns - 2) / 2 : columns;
  const int left = rows - static_cast<int>(lines.size());
  const int stacked = beside ? 1 : static_cast<int>(charts.charts.size());
  const int high = std::min(kMaxRows, left / std::max(1, stacked));
  if (high >= kLeastRows && across >= 30) {
    std::vector<std::vector<std::string>> blocks;
    for (const Chart& chart : charts.charts) {
      std::vector<std::string> block = text_chart(chart, charts.marks, across, high);
      if (block.empty()) continue;
      if (beside) {
        blocks.push_back(std::move(block));
      } else {
        lines.insert(lines.end(), block.begin(), block.end());
      }
    }
    const std::vector<std::string> together = side_by_side(blocks);
    lines.insert(lines.end(), together.begin(), together.end());
  }
  for (std::string& line : lines) {
    if (static_cast<int>(line.size()) > columns) line.resize(static_cast<size_t>(columns));
    line.erase(line.find_last_not_of(' ') + 1);
  }
  if (static_cast<int>(lines.size()) > rows) lines.resize(static_cast<size_t>(std::max(1, rows)));
  return lines;
}

namespace {

constexpr int kAxisColumns = 9;  // numbers left of the curves, and the axis

struct Extent {
  double low = 0, high = 1;
  double share_of(double value) const { return (value - low) / (high - low); }
};

std::optional<Extent> extent_of(const std::vector<ChartLine>& lines, std::vector<double> ChartLine::*values) {
  std::optional<Extent> extent;
  for (const ChartLine& line : lines) {
    for (const double value : line.*values) {
      if (!extent) extent = Extent{value, value};
      extent->low = std::min(extent->low, value);
      extent->high = std::max(extent->high, value);
    }
  }
  return extent;
}

/// y of a line at x, straight between points; nothing outside of it.
std::optional<double> value_at(const ChartLine& line, double from, double to) {
  const auto begin = std::lower_bound(line.x.begin(), line.x.end(), from);
  const auto end = std::upper_bound(line.x.begin(), line.x.end(), to);
  const auto first = begin - line.x.begin(), last = end - line.x.begin();
  if (first < last) {
    double sum = 0;
    for (auto i = first; i < last; ++i) sum += line.y[static_cast<size_t>(i)];
    return sum / static_cast<double>(last - first);
  }
  if (first == 0 || end == line.x.end()) return std::nullopt;
  const auto right = static_cast<size_t>(first), left = right - 1;
  const double share = ((from + to) / 2 - line.x[left]) / (line.x[right] - line.x[left]);
  return line.y[left] + share * (line.y[right] - line.y[left]);
}

std::string fitted(std::string text, int columns) {
  text.resize(static_cast<size_t>(columns), ' ');
  return text;
}

std::string title_line(const Chart& chart, const std::string& marks, int columns) {
  std::string text = core::printable(chart.title);
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine& line = chart.lines[i];
    if (line.y.empty()) continue;
    text += core::format("  {} {} {:.4g}", marks[i % marks.size()], core::printable(line.label), line.y.back());
  }
  return fitted(text, columns);
}

}  // namespace

std::vector<std::string> text_chart(const Chart& chart, const std::string& marks, int columns, int rows) {
  const std::optional<Extent> x_data = extent_of(chart.lines, &ChartLine::x),
                              y_data = extent_of(chart.lines, &ChartLine::y);
  if (!x_data || !y_data) return {};
  const int width = columns - kAxisColumns, height = rows - 3;  // without title, axis and its numbers
  Extent x = {std::min(0.0, x_data->low), x_data->high}, y = *y_data;
  if (x.high <= x.low) x.high = x.low + 1;
  if (y.high <= y.low)
    y = {y.low - 0.5 * std::max(1e-12, std::abs(y.low)), y.high + 0.5 * std::max(1e-12, std::abs(y.high))};
  std::vector<std::string> canvas(static_cast<size_t>(height), std::string(static_cast<size_t>(width), ' '));
  for (size_t i = chart.lines.size(); i-- > 0;) {
    const double step = (x.high - x.low) / width;
    for (int column = 0; column < width; ++column) {
      const std::optional<double> value =
          value_at(chart.lines[i], x.low + column * step, x.low + (column + 1) * step * (1 + 1e-12));
      if (!value) continue;
      const int row = height - 1 - static_cast<int>(std::lround(y.share_of(*value) * (height - 1)));
      canvas[static_cast<size_t>(std::clamp(row, 0, height - 1))][static_cast<size_t>(column)] =
          marks[i % marks.size()];
    }
  }
  std::vector<std::string> lines = {title_line(chart, marks, columns)};
  for (int row = 0; row < height; ++row) {
    const bool named = row == 0 || row == height - 1 || row == (height - 1) / 2;
    const double value = y.high - (y.high - y.low) * row / std::max(1, height - 1);
    const std::string number = named ? tick_text(std::stod(core::format("{:.3g}", value))) : "";
    lines.push_back(core::format("{:>{}} |", number, kAxisColumns - 2) + canvas[static_cast<size_t>(row)]);
  }
  lines.push_back(
      fitted(std::string(kAxisColumns - 1, ' ') + "+" + std::string(static_cast<size_t>(width), '-'), columns));
  const std::string low = tick_text(x.low), high = tick_text(x.high) + " " + chart.x_label;
  const int gap = columns - kAxisColumns - static_cast<int>(low.size() + high.size());
  lines.push_back(fitted(
      std::string(kAxisColumns, ' ') + low + std::string(static_cast<size_t>(std::max(1, gap)), ' ') + high, columns));
  return lines;
}

std::vector<std::string> side_by_side(const std::vector<std::vector<std::string>>& blocks) {
  std::vector<std::string> lines;
  size_t before = 0;
  for (const std::vector<std::string>& block : blocks) {
    if (block.empty()) continue;
    if (before > 0) before += 2;
    if (lines.size() < block.size()) lines.resize(block.size());
    for (size_t i = 0; i < block.size(); ++i) {
      lines[i].resize(before, ' ');
      lines[i] += block[i];
    }
    for (const std::string& line : lines) before = std::max(before, line.size());
  }
  return lines;
}

}  // namespace stoker::observe
