// SPDX-License-Identifier: Apache-2.0
#include "statistics/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/rng.h"
#include "core/system/worker_pool.h"

namespace stoker::statistics {
namespace {

constexpr int64_t kMaxGroups = 1000;

/// Draws as many samples as there are, with replacement.
void draw(uint64_t seed, int64_t resample, std::vector<uint32_t>& weights) {
  std::fill(weights.begin(), weights.end(), 0);
  core::Rng rng(seed, core::RngPurpose::bootstrap, 0, static_cast<uint64_t>(resample));
  for (size_t i = 0; i < weights.size(); ++i) ++weights[rng.below(weights.size())];
}

/// Leaves out the samples that are congruent to `group`.
void leave_out(int64_t group, int64_t groups, std::vector<uint32_t>& weights) {
  std::fill(weights.begin(), weights.end(), 1);
  for (size_t i = static_cast<size_t>(group); i < weights.size(); i += static_cast<size_t>(groups)) weights[i] = 0;
}

/// A percentile of sorted values, between neighbours in proportion, as numpy.percentile has it.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// A sixth of the skewness of what single groups contribute.
double acceleration_of(const std::vector<double>& left_out) {
  double mean = 0;
  for (const double value : left_out) mean += value / static_cast<double>(left_out.size());
  double squares = 0, cubes = 0;
  for (const double value : left_out) {
    squares += (mean - value) * (mean - value);
    cubes += (mean - value) * (mean - value) * (mean - value);
  }
  return squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

std::vector<double> defined(const std::vector<double>& values) {
  std::vector<double> kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept), [](double value) { return !std::isnan(value); });
  return kept;
}

}  // namespace

Interval bca_interval(double figure, std::vector<double> resampled, const std::vector<double>& left_out, double level) {
  resampled = defined(resampled);
  if (resampled.empty() || std::isnan(figure)) return {};
  std::sort(resampled.begin(), resampled.end());
  if (resampled.front() == resampled.back()) return {resampled.front(), resampled.front()};
  const auto [first, last] = std::equal_range(resampled.begin(), resampled.end(), figure);
  const double below = 0.5 * static_cast<double>((first - resampled.begin()) + (last - resampled.begin())) /
                       static_cast<double>(resampled.size());
  const double bias = normal_quantile(below);
  if (std::isinf(bias)) {  // the figure lies outside of all resamples: nothing to correct by
    return {quantile(resampled, (1 - level) / 2), quantile(resampled, (1 + level) / 2)};
  }
  const double acceleration = acceleration_of(defined(left_out));
  const auto corrected = [&](double share) {
    const double shifted = bias + normal_quantile(share);
    return normal_below(bias + shifted / (1 - acceleration * shifted));
  };
  return {quantile(resampled, corrected((1 - level) / 2)), quantile(resampled, corrected((1 + level) / 2))};
}

std::vector<Interval> bootstrap(int64_t samples, size_t figures, const Statistic& statistic,
                                const BootstrapSettings& settings) {
  std::vector<Interval> intervals(figures);
  if (samples < 2 || settings.resamples < 1) return intervals;
  const int64_t groups = std::min(samples, kMaxGroups), rounds = settings.resamples + groups;
  std::vector<double> values(static_cast<size_t>(rounds) * figures);  // [rounds, figures]
  core::for_each_index(rounds, settings.threads, [&] {
    return [&, weights = std::vector<uint32_t>(static_cast<size_t>(samples))](int64_t round) mutable {
      if (round < settings.resamples) {
        draw(settings.seed, round, weights);
      } else {
        leave_out(round - settings.resamples, groups, weights);
      }
      statistic(weights, values.data() + static_cast<size_t>(round) * figures);
    };
  });
  std::vector<double> whole(figures);
  statistic(std::vector<uint32_t>(static_cast<size_t>(samples), 1), whole.data());
  for (size_t k = 0; k < figures; ++k) {
    const auto column = [&](int64_t begin, int64_t end) {
      std::vector<double> of;
      for (int64_t round = begin; round < end; ++round) of.push_back(values[static_cast<size_t>(round) * figures + k]);
      return of;
    };
    intervals[k] =
        bca_interval(whole[k], column(0, settings.resamples), column(settings.resamples, rounds), settings.level);
  }
  return intervals;
}

std::vector<double> difference_p_values(int64_t samples, size_t figures, const Statistic& statistic,
                                        const BootstrapSettings& settings) {
  std::vector<double> chances(figures, std::numeric_limits<double>::quiet_NaN());
  if (samples < 1 || settings.resamples < 1) return chances;
  const auto n = static_cast<size_t>(samples);
  const auto rounds = static_cast<size_t>(settings.resamples);
  std::vector<double> values((rounds + 1) * figures);  // [rounds, figures], then the difference as it is
  core::for_each_index(settings.resamples + 1, settings.threads, [&] {
    return [&, weights = std::vector<uint32_t>(2 * n), others = std::vector<double>(figures)](int64_t round) mutable {
      core::Rng rng(settings.seed, core::RngPurpose::bootstrap, 1, static_cast<uint64_t>(round));
      for (size_t i = 0; i < n; ++i) {
        weights[i] = round == settings.resamples || rng.below(2) == 0 ? 1 : 0;
        weights[n + i] = 1 - weights[i];
      }
      double* const difference = values.data() + static_cast<size_t>(round) * figures;
      statistic(weights, difference);
      for (uint32_t& weight : weights) weight = 1 - weight;
      statistic(weights, others.data());
      for (size_t k = 0; k < figures; ++k) difference[k] -= others[k];
    };
  });
  const double* const seen = values.data() + rounds * figures;
  for (size_t k = 0; k < figures; ++k) {
    int64_t defined_rounds = 0, as_large = 0;
    const double least = std::abs(seen[k]) * (1 - 1e-9);  // sums of the same numbers round in another order
    for (size_t round = 0; round < rounds; ++round) {
      const double difference = values[round * figures + k];
      if (std::isnan(difference)) continue;
      ++defined_rounds;
      as_large += std::abs(difference) >= least ? 1 : 0;
    }
    if (!std::isnan(seen[k])) {
      chances[k] = static_cast<double>(1 + as_large) / static_cast<double>(1 + defined_rounds);
    }
  }
  return chances;
}

Interval difference_interval(int64_t first_alone, int64_t second_alone, int64_t samples, double level) {
  if (samples < 1) return {};
  const auto share = [samples](int64_t of) { return static_cast<double>(of) / static_cast<double>(samples); };
  const Interval first = wilson_interval(first_alone, samples, level);
  const Interval second = wilson_interval(second_alone, samples, level);
  const double difference = share(first_alone) - share(second_alone);
  return {difference - std::hypot(share(first_alone) - first.low, second.high - share(second_alone)),
          difference + std::hypot(first.high - share(first_alone), share(second_alone) - second.low)};
}

double sign_test(int64_t first_alone, int64_t second_alone) {
  const auto n = static_cast<double>(first_alone + second_alone);
  double tail = 0;
  for (int64_t k = 0; k <= std::min(first_alone, second_alone); ++k) {
    const auto of = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(of + 1) - std::lgamma(n - of + 1) - n * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

Interval wilson_interval(int64_t hits, int64_t samples, double level) {
  if (samples < 1) return {};
  const auto n = static_cast<double>(samples);
  const double z = normal_quantile((1 + level) / 2), share = static_cast<double>(hits) / n;
  const double middle = (share + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return {hits == 0 ? 0 : middle - half, hits == samples ? 1 : middle + half};  // exact at the ends
}

namespace {

constexpr double kSqrtTwo = 1.41421356237309504880;
constexpr double kTwoPi = 6.28318530717958647693;

template <size_t kCount>
double polynomial(const std::array<double, kCount>& coefficients, double x) {
  double value = 0;
  for (const double coefficient : coefficients) value = value * x + coefficient;
  return value;
}

double first_guess(double p) {
  constexpr std::array<double, 6> kMiddle = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                             1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array<double, 6> kUnderMiddle = {-5.447609879822406e+01, 1.615858368580409e+02,
                                                  -1.556989798598866e+02, 6.680131188771972e+01,
                                                  -1.328068155288572e+01, 1};
  constexpr std::array<double, 6> kTail = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                           -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array<double, 5> kUnderTail = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                                3.754408661907416e+00, 1};
  constexpr double kTailBegins = 0.02425;
  if (p < kTailBegins) {
    const double q = std::sqrt(-2 * std::log(p));
    return polynomial(kTail, q) / polynomial(kUnderTail, q);
  }
  if (p > 1 - kTailBegins) return -first_guess(1 - p);
  const double q = p - 0.5;
  return q * polynomial(kMiddle, q * q) / polynomial(kUnderMiddle, q * q);
}

}  // namespace

double normal_below(double x) { return 0.5 * std::erfc(-x / kSqrtTwo); }

double normal_quantile(double p) {
  if (p <= 0) return -std::numeric_limits<double>::infinity();
  if (p >= 1) return std::numeric_limits<double>::infinity();
  const double x = first_guess(p);
  const double error = normal_below(x) - p;
  const double step = error * std::sqrt(kTwoPi) * std::exp(x * x / 2);
  return x - step / (1 + x * step / 2);
}

}  // namespace stoker::statistics
