// SPDX-License-Identifier: Apache-2.0
#include "observe/report/svg_chart.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "observe/report/page.h"

namespace stoker::observe {
namespace {

using core::format;

// Pixels: the page shows charts in this size, so that their letters are those of the text. It fits a screen of 390.
constexpr double kWidth = 336, kHeight = 232;
constexpr double kLeft = 54, kRight = 318, kTop = 28, kBottom = 184;
constexpr double kLetter = 8.4;  // mean width
constexpr size_t kSpokenLines = 6;
constexpr size_t kMaxPoints = 400;  // more than a screen shows
constexpr size_t kMaxDots = 40;     // as long as single values can be distinguished

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
  if (!line.points_only) thinned.per_point = std::max<size_t>(1, (line.x.size() + kMaxPoints - 1) / kMaxPoints);
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

/// The range of all points; nothing when there is none.
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

std::vector<double> powers_of_ten(double low, double high) {
  std::vector<double> ticks;
  for (int i = 0; low + i <= high; ++i) ticks.push_back(std::pow(10, low + i));
  return ticks;
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
  return powers_of_ten(std::max(std::floor(std::log10(*first) + 1e-9), high - kMaxDecades), high);
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor, escape_html(text));
}

/// Names that do not fit below the axis are letters there.
bool names_fit(const Chart& chart) {
  const double width = (kRight - kLeft) / static_cast<double>(chart.x_names.size());
  return std::all_of(chart.x_names.begin(), chart.x_names.end(),
                     [&](const std::string& name) { return static_cast<double>(name.size()) * kLetter < width; });
}

std::string letter_of(size_t index) { return std::string(1, static_cast<char>('A' + index % 26)); }

std::string x_axis(const Chart& chart, const Range& x) {
  std::string svg;
  for (size_t i = 0; i < chart.x_names.size(); ++i) {
    svg += text_at(x.place(static_cast<double>(i), kLeft, kRight), kBottom + 18, "middle",
                   names_fit(chart) ? chart.x_names[i] : letter_of(i));
  }
  if (!chart.x_names.empty()) return svg;
  std::vector<double> ticks = nice_ticks(x.low, x.high, 5);
  if (x.logarithmic) ticks = powers_of_ten(std::floor(std::log10(x.low)), std::ceil(std::log10(x.high)));
  for (const double tick : ticks) {
    if (tick < x.low * (1 - 1e-9) - 1e-9 * std::abs(x.high) || tick > x.high * (1 + 1e-9)) continue;
    svg += text_at(x.place(tick, kLeft, kRight), kBottom + 18, "middle", tick_text(tick));
  }
  return svg;
}

std::string axes(const Chart& chart, const Range& x, const Range& y, const std::vector<double>& y_ticks) {
  std::string svg;
  for (const double tick : y_ticks) {
    const double at = y.place(tick, kBottom, kTop);
    svg += format("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>", kLeft, at, kRight);
    svg += text_at(kLeft - 6, at + 5, "end", tick_text(tick));
  }
  svg += x_axis(chart, x);
  svg += format("<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\"/>", kLeft, kTop, kBottom, kRight);
  svg += text_at((kLeft + kRight) / 2, kHeight - 9, "middle", chart.x_label + (x.logarithmic ? ", logarithmic" : ""));
  return svg + text_at(2, 14, "start", chart.y_label + (y.logarithmic ? ", logarithmic" : ""));
}

std::string curve(const ChartLine& line, const Thinned& points, const Range& x, const Range& y) {
  std::string path;
  std::string dots;
  const bool has_dots = line.points_only || (points.x.size() <= kMaxDots && line.colour != kFaintLine);
  const bool has_titles = has_dots && points.x.size() <= kMaxPoints / 4;
  for (size_t i = 0; i < points.x.size(); ++i) {
    const double px = x.place(points.x[i], kLeft, kRight);
    const double py = std::clamp(y.place(points.y[i], kBottom, kTop), kTop, kBottom);
    if (!line.points_only) path += format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", px, py);
    if (!has_dots) continue;
    dots += format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"", px, py, line.points_only && !has_titles ? 1.6 : 2.6);
    dots += has_titles ? format("><title>{}: {:.6g} at {:.4g}</title></circle>", escape_html(line.label), points.y[i],
                                points.x[i])
                       : "/>";
  }
  if (!path.empty()) path = "<path d=\"" + path + "\"/>";
  return format("<g class=\"c{}{}\">{}{}</g>", line.colour, line.dashed ? " dashed" : "", path, dots);
}

std::string legend(const Chart& chart) {
  std::string html = "<ul class=\"legend\">";
  size_t per_point = 1, faint = 0;
  const auto entry = [](const ChartLine& line, const std::string& text) {
    const char* const mark = line.points_only ? "<circle cx=\"12\" cy=\"4\" r=\"3\"/>" : "<path d=\"M0 4H24\"/>";
    return format("<li><svg class=\"key c{}{}\" viewBox=\"0 0 24 8\" aria-hidden=\"true\">{}</svg>{}</li>", line.colour,
                  line.dashed ? " dashed" : "", mark, text);
  };
  const ChartLine* last_faint = nullptr;
  for (const ChartLine& line : chart.lines) {
    if (line.x.empty()) continue;
    per_point = std::max(per_point, thin(line).per_point);
    if (line.colour == kFaintLine) {
      ++faint;
      last_faint = &line;
    } else if (!line.label.empty()) {
      html += entry(line, escape_html(line.label) +
                              (line.points_only || !chart.has_latest ? "" : format(" <b>{:.4g}</b>", line.y.back())));
    }
  }
  if (faint > 0) html += entry(*last_faint, faint == 1 ? escape_html(last_faint->label) : format("{} more", faint));
  for (size_t i = 0; !names_fit(chart) && i < chart.x_names.size(); ++i) {
    html += "<li>" + letter_of(i) + ": " + escape_html(chart.x_names[i]) + "</li>";
  }
  if (per_point > 1) html += format("<li class=\"faint\">up to {} values per point</li>", per_point);
  return html + "</ul>";
}

/// For those who cannot see the chart.
std::string spoken(const Chart& chart) {
  std::string text = format("{}: {} over {}.", chart.title, chart.y_label, chart.x_label);
  size_t lines = 0;
  for (const ChartLine& line : chart.lines) {
    if (line.x.empty() || ++lines > kSpokenLines) continue;
    const auto [low, high] = std::minmax_element(line.y.begin(), line.y.end());
    text += line.label.empty() ? " " : format(" {}: ", line.label);
    text += line.points_only ? format("{} points", line.x.size())
                             : format("from {:.4g} to {:.4g}", line.y.front(), line.y.back());
    text += format(", lowest {:.4g}, highest {:.4g}.", *low, *high);
  }
  return text + (lines > kSpokenLines ? format(" {} more lines.", lines - kSpokenLines) : "");
}

/// Where x has names, half a step of air on both sides.
Range x_range(const Chart& chart, const Range& data) {
  if (!chart.x_names.empty()) return {-0.5, static_cast<double>(chart.x_names.size()) - 0.5, false};
  if (chart.x_is_logarithmic) {
    const double air = std::pow(data.high / data.low, 0.06) * 1.05;
    return {data.low / air, data.high * air, true};
  }
  Range x = {chart.x_min.value_or(std::min(0.0, data.low)), chart.x_max.value_or(data.high), false};
  if (x.high <= x.low) x.high = x.low + 1;
  return x;
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
    const double high = std::min(chart.y_ceiling, std::max(chart.least_high, chart.y_max.value_or(y_data->high)));
    const double low = chart.y_min.value_or(y_data->low);
    // A curve that is 100 percent throughout lies at the upper end of the axis.
    y_ticks = nice_ticks(high == chart.y_ceiling && low >= high ? 0.8 * high : std::min(low, high), high, 5);
  }
  const Range y = {y_ticks.front(), y_ticks.back(), logarithmic}, x = x_range(chart, *x_data);
  std::string svg = axes(chart, x, y, y_ticks);
  for (const bool faint : {true, false}) {  // those to be seen come last
    for (const ChartLine& line : chart.lines) {
      if (!line.x.empty() && (line.colour == kFaintLine) == faint) svg += curve(line, thin(line), x, y);
    }
  }
  return format(
      "<figure><figcaption>{0}</figcaption><svg class=\"chart\" viewBox=\"0 0 {1} {2}\" width=\"{1}\" height=\"{2}\" "
      "role=\"img\" aria-label=\"{3}\">{4}</svg>{5}</figure>\n",
      escape_html(chart.title), kWidth, kHeight, escape_html(spoken(chart)), svg, legend(chart));
}

}  // namespace stoker::observe
