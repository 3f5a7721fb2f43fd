// SPDX-License-Identifier: Apache-2.0
// How sure the figures of an evaluation are, and whether one network is better than another on the same samples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "statistics/bootstrap.h"
#include "statistics/calibration.h"
#include "statistics/evaluated_samples.h"
#include "statistics/thresholds.h"

namespace stoker::statistics {

struct SureMetric {
  std::string name;  ///< as in WeightedMetrics
  double value = 0;
  Interval interval;
  bool lower_is_better = false;
};

struct Certainty {
  int64_t samples = 0;
  BootstrapSettings settings;
  std::vector<SureMetric> metrics;          ///< "loss" first
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
    Interval interval;  ///< of first - second
    bool lower_is_better = false;
    double chance = 1;  ///< p of networks that are worth the same; NaN: undefined
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
/// resamples agree too much: an interval is without 0 only where a paired test, exact for any number of them, agrees
/// (chance_of_difference()), and a share on which fewer than 20 samples differ gets difference_interval(). Of the
/// same task; samples are matched by their index. Throws core::StopRequested.
Comparison compare(const EvaluatedSamples& first, const EvaluatedSamples& second, const BootstrapSettings& settings);

}  // namespace stoker::statistics
