// SPDX-License-Identifier: Apache-2.0
// Whether recipes that were run several times differ by more than chance, and how many runs would show it.
#pragma once

#include <cstdint>
#include <vector>

#include "statistics/bootstrap.h"

namespace stoker::statistics {

// Student's distribution with `freedom` degrees of freedom, 1 or more.

/// Probability of a value up to t.
double student_below(double t, double freedom);
/// Its inverse, p in (0, 1).
double student_quantile(double p, double freedom);

/// Mean, spread and confidence interval of a figure over runs.
struct RunMean {
  int64_t runs = 0;
  double mean = 0, deviation = 0;  ///< NaN without a run; NaN with one
  Interval interval;               ///< 95 %; NaN with less than two runs
  /// p of a mean of 0. 1 with less than two runs; where all runs agree, that of the sign test.
  double p_value = 1;
};

/// Student's t. NaNs are left out. `overlap`: 0 for runs that are independent; 1 / (K - 1) for runs on K folds, which
/// share most of their training images: the variance of the mean is that of a run times (1 / runs + overlap) (Nadeau
/// and Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003).
RunMean mean_of_runs(const std::vector<double>& figures, double overlap);

/// First less second, of runs that have the same seed and fold: what they share cancels out.
RunMean difference_of_runs(const std::vector<double>& first, const std::vector<double>& second, double overlap);

/// p values for all of these tests together: none of them below 5 % in 95 of 100 cases where nothing differs (Holm, "A
/// Simple Sequentially Rejective Multiple Test Procedure", 1979).
std::vector<double> corrected_for_number(const std::vector<double>& p_values);

struct PowerSettings {
  double alpha = 0.05;       ///< p below which a difference counts
  double power = 0.8;        ///< how often it is to be found
  double overlap = 0;        ///< as in mean_of_runs()
  int64_t step = 1;          ///< runs come in as many
  int64_t most = 1'000'000;  ///< runs
};

/// How many pairs of runs find a difference as large as the one that was observed, in as many of 100 cases as `power`
/// has it. That a deviation of few runs is not well known counts: it is the mean over all that could be behind it.
/// 0: no number of runs up to `most`, or less than two were observed.
int64_t runs_to_find(const RunMean& observed, const PowerSettings& settings);
/// The least difference that `runs` pairs find as often, where they deviate as the observed ones do. NaN for less than
/// two, of either.
double difference_to_find(const RunMean& observed, int64_t runs, const PowerSettings& settings);

}  // namespace stoker::statistics
