// SPDX-License-Identifier: Apache-2.0
// A line chart or scatter plot as inline SVG inside a <figure>. Colours are CSS classes c0 to c6 of the page, so
// that one page serves light and dark. Takes numbers and labels, not runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stoker::observe {

struct ChartLine {
  std::string label;
  std::vector<double> x, y;  ///< equally many, x ascending, all finite
  int colour = 0;            ///< 0 to 5; kFaintLine: one of many, named together in the legend
  bool dashed = false;       ///< a second mark besides colour
  bool points_only = false;  ///< no line between the points; x in any order
};
inline constexpr int kFaintLine = 6;

struct Chart {
  std::string title;
  std::string x_label;  ///< with its unit: "epochs"
  std::string y_label;  ///< "percent"
  std::vector<ChartLine> lines;
  std::optional<double> y_min, y_max;  ///< else from the data
  std::optional<double> x_min, x_max;  ///< else from 0, or what is below it, to the data
  double y_ceiling = 1e300;            ///< no value lies above it, and neither does the axis: 100 percent
  std::vector<std::string> x_names;    ///< x counts these from 0
  double least_high = -1e300;          ///< the axis reaches at least this far up, so that noise looks small
  /// A logarithmic axis upwards where a tenth of the points or more lie below a hundredth of the highest, and above 0.
  /// Values that are not above 0 lie on its lower end. y_min does not hold then.
  bool may_be_logarithmic = false;
  bool x_is_logarithmic = false;  ///< all x are above 0
  bool has_latest = true;         ///< the last value of a line is its latest one: the legend has it
};

/// Read aloud it is its title, and of each line where it begins, ends, and is lowest and highest. "" when no line has a
/// point. Curves of many points are averaged over neighbours, which the legend states.
std::string svg_chart(const Chart& chart);

/// Round numbers that cover [low, high] in about `count` steps; ascending, at least two.
std::vector<double> nice_ticks(double low, double high, int count);

/// Short: "0.25", "12k", "1.5M", "1e-05".
std::string tick_text(double value);

}  // namespace stoker::observe
