// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/spike.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker::train {
namespace {

constexpr size_t kSeriesHistory = 50;
constexpr size_t kSeriesLeast = 4;
constexpr size_t kSeriesAfter = 8;
constexpr double kSeriesShort = 10;  // times the factor, where next to nothing is known
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kSeriesSpread = 10;  // median absolute deviations

std::vector<double> finite_part(const std::vector<double>& values, size_t begin, size_t end) {
  std::vector<double> part;
  for (size_t i = begin; i < std::min(end, values.size()); ++i) {
    if (std::isfinite(values[i])) part.push_back(values[i]);
  }
  return part;
}

/// How often `value` is the usual of `others`; 0: it does not stand out.
double multiple_of(double value, const std::vector<double>& others, double factor) {
  const double usual = median_of(others);
  std::vector<double> deviations;
  deviations.reserve(others.size());
  for (const double other : others) deviations.push_back(std::abs(other - usual));
  const bool stands_out = usual > 0 && value > factor * usual && value - usual > kSeriesSpread * median_of(deviations);
  return stands_out ? value / usual : 0;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<Episode> episodes_of(const std::vector<double>& values, double factor) {
  constexpr size_t kGap = 2;
  std::vector<Episode> episodes;
  for (size_t i = 0; i < values.size(); ++i) {
    const double times = std::isfinite(values[i]) ? spike(values, i, factor) : kInfinite;
    if (times == 0) continue;
    const double usual = std::isfinite(times) ? values[i] / times : median_of(finite_part(values, 0, i));
    Episode episode{i, i, i, times};
    for (size_t k = i + 1; k < values.size() && k <= episode.end + kGap + 1; ++k) {
      const double multiple = !std::isfinite(values[k]) ? kInfinite : usual > 0 ? values[k] / usual : 0;
      if (multiple <= factor) continue;
      episode.end = k;
      if (multiple > episode.most) {
        episode.most = multiple;
        episode.peak = k;
      }
    }
    episodes.push_back(episode);
    i = episode.end;
  }
  return episodes;
}

double spike(const std::vector<double>& values, size_t i, double factor) {
  const std::vector<double> before = finite_part(values, i > kSeriesHistory ? i - kSeriesHistory : 0, i);
  if (before.empty()) return 0;
  const double multiple = multiple_of(values[i], before, factor);
  if (before.size() >= kSeriesLeast) return multiple;
  const std::vector<double> after = finite_part(values, i + 1, i + 1 + kSeriesAfter);
  if (after.size() < kSeriesLeast) return multiple_of(values[i], before, kSeriesShort * factor);
  return std::min(multiple, multiple_of(values[i], after, factor));
}

}  // namespace stoker::train
