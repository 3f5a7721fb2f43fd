// SPDX-License-Identifier: Apache-2.0
// Bootstrap: the confidence interval of a metric of some samples, from resamples of them that are drawn with
// replacement.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace stoker::statistics {

struct Interval {
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
};

struct BootstrapSettings {
  int64_t resamples = 2000;
  double level = 0.95;  ///< share of intervals that hold the truth
  uint64_t seed = 0;
  int64_t threads = 1;
};

/// Writes figures of the samples, of which sample i counts weights[i] times. NaN: undefined. From several threads at
/// once.
using Statistic = std::function<void(const std::vector<uint32_t>& weights, double* figures)>;

/// One interval per figure: bias-corrected and accelerated (Efron, "Better Bootstrap Confidence Intervals", JASA 1987),
/// the acceleration from a jackknife that leaves out one of at most 1,000 groups of samples at a time; with as many
/// samples, one sample each. Resamples in which a figure is undefined are left out for it; the interval is NaN where
/// all are, and one point where all agree. The same for any number of threads. Throws core::StopRequested.
std::vector<Interval> bootstrap(int64_t samples, size_t figures, const Statistic& statistic,
                                const BootstrapSettings& settings);

/// The interval from a figure, what it is in resamples, and what it is without each group. Either may hold NaNs.
Interval bca_interval(double figure, std::vector<double> resampled, const std::vector<double>& left_out, double level);

/// The interval of the difference between two shares of the same samples: `first_alone` samples have the property for
/// the first only, `second_alone` for the second only. Wilson's intervals of both, put together by Newcombe's rule
/// ("Improved confidence intervals for the difference between binomial proportions based on paired data", 1998).
Interval difference_interval(int64_t first_alone, int64_t second_alone, int64_t samples, double level);

/// How probable a difference at least as large is between two networks that are worth the same: p of a paired test in
/// which each sample is given to either by a coin. `statistic` is of the samples of both, first those of one, then of
/// the other. One p for each figure; NaN: undefined. For a share sign_test() has the exact p.
std::vector<double> difference_p_values(int64_t samples, size_t figures, const Statistic& statistic,
                                        const BootstrapSettings& settings);

/// The exact sign test (for shares: McNemar's exact test): the probability that of first_alone + second_alone samples
/// that differ, each by a coin, at least as many fall to one side, on either of both sides. 1 where none differ.
double sign_test(int64_t first_alone, int64_t second_alone);

/// The interval of a share, `hits` of `samples`: Wilson's score interval ("Probable Inference", JASA 1927), which holds
/// where all or none are hits, too.
Interval wilson_interval(int64_t hits, int64_t samples, double level);

// The standard normal distribution.

/// Probability of a value up to x.
double normal_below(double x);
/// Its inverse, p in [0, 1]; infinite at the ends. Acklam's rational approximation ("An algorithm for computing the
/// inverse normal cumulative distribution function", 2003) and one step of Halley: 15 digits.
double normal_quantile(double p);

}  // namespace stoker::statistics
