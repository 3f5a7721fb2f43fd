// SPDX-License-Identifier: Apache-2.0
// How sure the figures of an evaluation are, and whether one network is better than another on the same samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "statistics/bootstrap.h"
#include "statistics/thresholds.h"
#include "statistics/weighted_metrics.h"

namespace stoker::statistics {

// Whether predictions with 80 % confidence are right in 80 of 100 cases.

/// Answers whose confidence lies in (low, high], the first bin from 0 on.
struct ReliabilityBin {
  double low = 0, high = 1;
  int64_t answers = 0;
  double confidence = 0;    ///< mean; NaN where the bin is empty
  double right = 0;         ///< share; NaN where the bin is empty
  Interval right_interval;  ///< Wilson's, 95 %
};

struct Calibration {
  /// Expected calibration error, 0 to 1: mean over answers of |confidence - share that is right| of their bin (Naeini,
  /// Cooper, Hauskrecht, AAAI 2015; Guo et al., ICML 2017).
  double ece = 0;
  /// The ece that a perfectly calibrated network exceeds in 5 of 100 cases on the same number of answers: an ece below
  /// it is not a finding.
  double chance_ece = 0;
  double confidence = 0, right = 0;  ///< means over all answers
  std::vector<ReliabilityBin> bins;
};

inline constexpr int kReliabilityBins = 15;

/// confidence [n] in [0, 1]; right [n], 0 or 1. All 0 for no answer.
Calibration calibration_of(const std::vector<float>& confidence, const std::vector<uint8_t>& right, uint64_t seed,
                           int bins = kReliabilityBins);
/// Confidence of the predicted class (multiclass), of the probability that is given to a positive (binary; multilabel:
/// of all labels together). Not for tasks that learn numbers.
Calibration calibration_of(const EvaluatedSamples& samples, uint64_t seed);

// How outputs become probabilities and predictions, fitted to samples with the outputs of every class or label as the
// network has them.

struct ProbabilityFit {
  double temperature = 1;
  bool is_lowest = false;              ///< 0.05, and less would be better: (nearly) all answers are right
  bool is_highest = false;             ///< 20, and more would be better: outputs are unrelated to what is true
  std::vector<double> threshold{0.5};  ///< one value, or one per label
};

/// The temperature with the smallest negative log-likelihood (Guo et al., ICML 2017) and, for binary and multilabel,
/// the thresholds with the best F1. A label that all or no samples have keeps its threshold.
ProbabilityFit fit_probabilities(const EvaluatedSamples& raw);

/// fit_probabilities() on one half of the samples, drawn by `seed`, on the samples of the other.
struct FitCheck {
  struct Figures {
    double ece = 0, chance_ece = 0;  ///< see Calibration
    double loss = 0;                 ///< negative log-likelihood
    double f1 = 0;                   ///< labels: mean F1 over them
  };
  int64_t fitted = 0, judged = 0;  ///< samples
  Figures before, after;           ///< at temperature 1 and the thresholds of `raw`; as fitted

  bool loss_is_worse() const { return after.loss > before.loss; }
  bool f1_is_worse() const { return after.f1 < before.f1; }
};
FitCheck check_fit(const EvaluatedSamples& raw, uint64_t seed);
/// `fit` as far as the samples of `check` are the better for it: temperature 1 where their loss rose, the thresholds of
/// `raw` where their F1 fell. What is kept predicts the same labels as with all of `fit`.
ProbabilityFit without_worse(const ProbabilityFit& fit, const FitCheck& check, const EvaluatedSamples& raw);

struct MetricEstimate {
  std::string name;  ///< as in WeightedMetrics
  double value = 0;
  Interval interval;
  bool lower_is_better = false;
};

struct Certainty {
  int64_t samples = 0;
  BootstrapSettings settings;
  std::vector<MetricEstimate> metrics;      ///< "loss" first
  std::optional<Calibration> calibration;   ///< not of tasks that learn numbers
  std::vector<LabelThresholds> thresholds;  ///< binary, multilabel
};

/// Figures of two networks, compared on the samples that both have seen.
struct Comparison {
  int64_t samples = 0;
  int64_t left_out = 0;  ///< that only one of them has
  struct Difference {
    std::string name;
    double first = 0, second = 0;
    Interval interval;  ///< confidence interval of first - second
    bool lower_is_better = false;
    double p_value = 1;  ///< p of networks that are worth the same; NaN: undefined or, without resamples, not tested
    double difference() const { return first - second; }
    /// 1: the first is better, -1: the second, 0: the interval holds 0.
    int winner() const;
  };
  std::vector<Difference> metrics;
};

/// Intervals by the bootstrap; a share that fewer than 20 samples have or lack gets Wilson's, since resamples of so few
/// agree too much. Throws core::StopRequested.
Certainty certainty_of(const EvaluatedSamples& samples, const BootstrapSettings& settings);

/// Each resample draws samples for both, so that what is hard for both cancels out. Of few samples that differ
/// resamples agree too much: an interval is without 0 only where a paired test agrees (sign_test() of shares,
/// difference_p_values() of the others), and a share on which fewer than 20 samples differ gets difference_interval().
/// Both are of one task; samples are matched by their index. Throws core::StopRequested.
Comparison compare(const EvaluatedSamples& first, const EvaluatedSamples& second, const BootstrapSettings& settings);

}  // namespace stoker::statistics
