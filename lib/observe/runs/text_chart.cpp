// SPDX-License-Identifier: Apache-2.0
#include "observe/runs/text_chart.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/format.h"

namespace stoker::observe {
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
