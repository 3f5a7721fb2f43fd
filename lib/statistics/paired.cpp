// SPDX-License-Identifier: Apache-2.0
#include "statistics/paired.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stoker::statistics {
namespace {

/// The incomplete beta function, regularized; its continued fraction by Lentz's algorithm.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  constexpr double kTiny = 1e-300, kExact = 1e-16;
  const auto not_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m < 10'000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double factor = 1;
    for (const double term : {even, odd}) {
      d = 1 / not_zero(1 + term * d);
      c = not_zero(1 + term / c);
      factor = c * d;
      fraction *= factor;
    }
    if (std::abs(factor - 1) < kExact) break;
  }
  const double log_front =
      a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) - std::log(a);
  return std::exp(log_front) * fraction;
}

/// Values of sqrt(chi-squared / freedom), the deviation of `freedom` + 1 numbers over the true one, with their shares.
struct DeviationPoint {
  double value = 0, share = 0;
};
std::vector<DeviationPoint> deviations_of(double freedom) {
  constexpr int kPoints = 100;
  const double reach = 7 / std::sqrt(2 * freedom), low = std::max(0.0, 1 - reach), high = 1 + reach;
  std::vector<DeviationPoint> points;
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double w = low + (high - low) * (i + 0.5) / kPoints;
    // The density less a factor, 1 at its usual place, so that it is finite for any freedom.
    const double share = std::exp((freedom - 1) * std::log(w) - freedom * (w * w - 1) / 2);
    points.push_back({w, share});
    sum += share;
  }
  for (DeviationPoint& point : points) point.share /= sum;
  return points;
}

/// How often `runs` pairs find it; see runs_to_find().
double found_share(const RunMean& observed, int64_t runs, const PowerSettings& settings) {
  const double freedom = static_cast<double>(runs - 1);
  const double limit = student_quantile(1 - settings.alpha / 2, freedom);
  const double errors =
      std::abs(observed.mean) / (observed.deviation * std::sqrt(1 / static_cast<double>(runs) + settings.overlap));
  const std::vector<DeviationPoint> later = deviations_of(freedom);
  double found = 0;
  for (const DeviationPoint& now : deviations_of(static_cast<double>(observed.runs - 1))) {
    for (const DeviationPoint& then : later) {
      found += now.share * then.share * normal_below(errors * now.value - limit * then.value);
    }
  }
  return found;
}

}  // namespace

double student_below(double t, double freedom) {
  const double tail = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double freedom) {
  if (p < 0.5) return -student_quantile(1 - p, freedom);
  // The tail, since 1 - p is exact where p is close to 1.
  const auto tail = [&](double t) { return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2; };
  double low = 0, high = 1;
  while (tail(high) > 1 - p && high < 1e300) high *= 2;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (tail(middle) > 1 - p ? low : high) = middle;
  }
  return high;
}

RunMean mean_of_runs(const std::vector<double>& figures, double overlap) {
  RunMean all;
  double sum = 0, squares = 0;
  for (const double figure : figures) {
    if (std::isnan(figure)) continue;
    ++all.runs;
    sum += figure;
  }
  const auto runs = static_cast<double>(all.runs);
  all.mean = sum / runs;  // 0 / 0 is NaN
  for (const double figure : figures) squares += std::isnan(figure) ? 0 : (figure - all.mean) * (figure - all.mean);
  all.deviation = std::sqrt(squares / (runs - 1));
  if (all.runs < 2) {
    all.deviation = std::nan("");
    return all;
  }
  const double error = all.deviation * std::sqrt(1 / runs + overlap);
  const double reach = student_quantile(0.975, runs - 1) * error;
  all.interval = {all.mean - reach, all.mean + reach};
  // Rounded figures that happen to agree are no proof that they always do.
  const bool agree = all.deviation <= 1e-12 * std::abs(all.mean);
  if (!agree) {
    all.p_value = 2 * student_below(-std::abs(all.mean) / error, runs - 1);
  } else if (all.mean != 0) {
    all.p_value = sign_test(all.runs, 0);
  }
  return all;
}

RunMean difference_of_runs(const std::vector<double>& first, const std::vector<double>& second, double overlap) {
  std::vector<double> differences;
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) differences.push_back(first[i] - second[i]);
  return mean_of_runs(differences, overlap);
}

std::vector<double> corrected_for_number(const std::vector<double>& p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> corrected(p_values.size());
  double highest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    highest = std::max(highest, std::min(1.0, p_values[order[i]] * static_cast<double>(order.size() - i)));
    corrected[order[i]] = highest;
  }
  return corrected;
}

int64_t runs_to_find(const RunMean& observed, const PowerSettings& settings) {
  if (observed.runs < 2 || observed.mean == 0) return 0;
  const auto finds = [&](int64_t steps) {
    const int64_t runs = steps * settings.step;
    return runs > 1 && (observed.deviation <= 0 || found_share(observed, runs, settings) >= settings.power);
  };
  const int64_t most = settings.most / settings.step;
  int64_t low = 0, high = 1;
  while (!finds(high)) {
    if (high >= most) return 0;
    low = high;
    high = std::min(2 * high, most);
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (finds(middle) ? high : low) = middle;
  }
  return high * settings.step;
}

double difference_to_find(const RunMean& observed, int64_t runs, const PowerSettings& settings) {
  if (observed.runs < 2 || runs < 2) return std::nan("");
  RunMean assumed = observed;
  const auto finds = [&](double difference) {
    assumed.mean = difference;
    return found_share(assumed, runs, settings) >= settings.power;
  };
  double low = 0, high = observed.deviation;
  if (high <= 0) return 0;
  while (!finds(high)) high *= 2;
  while (high - low > 1e-6 * high) {
    const double middle = (low + high) / 2;
    (finds(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace stoker::statistics
