// SPDX-License-Identifier: Apache-2.0
#include "observe/report/svg_chart.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "observe/report/html.h"

namespace stoker::observe {
namespace {

using core::format;

// Units of the view box; the page scales it to the width at hand.
constexpr double kWidth = 400, kHeight = 230;
constexpr double kLeft = 46, kRight = 388, kTop = 22, kBottom = 194;
constexpr size_t kMaxPoints = 400;  // more than a screen shows
constexpr size_t kMaxDots = 40;     // as long as single values can be told apart

struct Range {
  double low = 0, high = 1;
  bool logarithmic = false;  ///< low is above 0
  double place(double value, double begin, double end) const {
    if (logarithmic) return begin + std::log(std::max(value, low) / low) / std::log(high / low) * (end - begin);
    return begin + (value - low) / (high - low) * (end - begin);
  }
};

struct Thinned {
  std::vector<double> x, y;
  size_t per_point = 1;
};

Thinned thin(const ChartLine& line) {
  Thinned thinned;
  thinned.per_point = std::max<size_t>(1, (line.x.size() + kMaxPoints - 1) / kMaxPoints);
  for (size_t begin = 0; begin < line.x.size(); begin += thinned.per_point) {
    const size_t end = std::min(begin + thinned.per_point, line.x.size());
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) {
      x += line.x[i];
      y += line.y[i];
    }
    thinned.x.push_back(x / static_cast<double>(end - begin));
    thinned.y.push_back(y / static_cast<double>(end - begin));
  }
  return thinned;
}

/// Of all points; nothing when there is none.
std::optional<Range> range_of(const std::vector<ChartLine>& lines, std::vector<double> ChartLine::*values) {
  std::optional<Range> range;
  for (const ChartLine& line : lines) {
    for (const double value : line.*values) {
      if (!range) range = Range{value, value, false};
      range->low = std::min(range->low, value);
      range->high = std::max(range->high, value);
    }
  }
  return range;
}

/// Powers of ten around what is above 0, at most 8; empty where a linear axis shows the points.
std::vector<double> decades_of(const std::vector<ChartLine>& lines) {
  constexpr double kWide = 100, kMaxDecades = 8;
  std::vector<double> values;
  for (const ChartLine& line : lines) values.insert(values.end(), line.y.begin(), line.y.end());
  std::sort(values.begin(), values.end());
  const auto first = std::upper_bound(values.begin(), values.end(), 0.0);
  const auto small = std::lower_bound(first, values.end(), values.empty() ? 0 : values.back() / kWide);
  if ((small - first) * 10 < static_cast<std::ptrdiff_t>(values.size()) || small == first) return {};
  const double high = std::ceil(std::log10(values.back()) - 1e-9);
  const double low = std::max(std::floor(std::log10(*first) + 1e-9), high - kMaxDecades);
  std::vector<double> ticks;
  for (int i = 0; low + i <= high; ++i) ticks.push_back(std::pow(10, low + i));
  return ticks;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor, escape_html(text));
}

std::string axes(const Chart& chart, const Range& x, const Range& y, const std::vector<double>& x_ticks,
                 const std::vector<double>& y_ticks) {
  std::string svg;
  for (const double tick : y_ticks) {
    const double at = y.place(tick, kBottom, kTop);
    svg += format("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>", kLeft, at, kRight);
    svg += text_at(kLeft - 5, at + 4, "end", tick_text(tick));
  }
  for (const double tick : x_ticks) {
    if (tick < x.low - 1e-9 * std::abs(x.low) || tick > x.high * (1 + 1e-9)) continue;
    svg += text_at(x.place(tick, kLeft, kRight), kBottom + 15, "middle", tick_text(tick));
  }
  svg += format("<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\"/>", kLeft, kTop, kBottom, kRight);
  svg += text_at((kLeft + kRight) / 2, kHeight - 5, "middle", chart.x_label);
  return svg + text_at(2, 12, "start", chart.y_label + (y.logarithmic ? ", logarithmic" : ""));
}

std::string curve(const ChartLine& line, const Thinned& points, const Range& x, const Range& y) {
  std::string path;
  std::string dots;
  for (size_t i = 0; i < points.x.size(); ++i) {
    const double px = x.place(points.x[i], kLeft, kRight);
    const double py = std::clamp(y.place(points.y[i], kBottom, kTop), kTop, kBottom);
    path += format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", px, py);
    if (points.x.size() > kMaxDots) continue;
    dots += format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\"><title>{}: {:.6g} at {:.4g}</title></circle>", px, py,
                   escape_html(line.label), points.y[i], points.x[i]);
  }
  return format("<g class=\"c{}{}\"><path d=\"{}\"/>{}</g>", line.colour, line.dashed ? " dashed" : "", path, dots);
}

std::string legend(const std::vector<ChartLine>& lines) {
  std::string html = "<ul class=\"legend\">";
  size_t per_point = 1;
  for (const ChartLine& line : lines) {
    if (line.x.empty()) continue;
    per_point = std::max(per_point, thin(line).per_point);
    html += format(
        "<li><svg class=\"key c{}{}\" viewBox=\"0 0 24 8\" aria-hidden=\"true\"><path d=\"M0 4H24\"/></svg>{} "
        "<b>{:.4g}</b></li>",
        line.colour, line.dashed ? " dashed" : "", escape_html(line.label), line.y.back());
  }
  if (per_point > 1) html += format("<li class=\"faint\">up to {} values per point</li>", per_point);
  return html + "</ul>";
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count) {
  const double span = high > low ? high - low : std::max(std::abs(high), 1e-12);
  const double rough = span / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double digit = rough / power;
  const double step = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  std::vector<double> ticks;
  for (int i = 0; first + i <= last || i < 2; ++i) ticks.push_back((first + i) * step);
  return ticks;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return format("{:.4g}G", value / 1e9);
  if (size >= 1e6) return format("{:.4g}M", value / 1e6);
  if (size >= 1e4) return format("{:.4g}k", value / 1e3);
  return format("{:.4g}", size < 1e-300 ? 0.0 : value);
}

std::string svg_chart(const Chart& chart) {
  const auto x_data = range_of(chart.lines, &ChartLine::x), y_data = range_of(chart.lines, &ChartLine::y);
  if (!x_data || !y_data) return "";
  std::vector<double> y_ticks = chart.may_be_logarithmic ? decades_of(chart.lines) : std::vector<double>();
  const bool logarithmic = !y_ticks.empty();
  if (!logarithmic) {
    const double high = std::max(chart.least_high, chart.y_max.value_or(y_data->high));
    y_ticks = nice_ticks(chart.y_min.value_or(y_data->low), high, 5);
  }
  const Range y = {y_ticks.front(), y_ticks.back(), logarithmic};
  Range x = {std::min(0.0, x_data->low), x_data->high, false};  // epochs and minutes begin at 0
  if (x.high <= x.low) x.high = x.low + 1;
  std::string svg = axes(chart, x, y, nice_ticks(x.low, x.high, 6), y_ticks);
  for (const ChartLine& line : chart.lines) {
    if (!line.x.empty()) svg += curve(line, thin(line), x, y);
  }
  return format(
      "<figure><figcaption>{0}</figcaption><svg class=\"chart\" viewBox=\"0 0 {1} {2}\" role=\"img\" "
      "aria-label=\"{0}: {3} over {4}\">{5}</svg>{6}</figure>\n",
      escape_html(chart.title), kWidth, kHeight, escape_html(chart.y_label), escape_html(chart.x_label), svg,
      legend(chart.lines));
}

}  // namespace stoker::observe
