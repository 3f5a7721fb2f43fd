// SPDX-License-Identifier: Apache-2.0
#include "statistics/normal.h"

#include <array>
#include <cmath>
#include <limits>

namespace stoker::statistics {
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
