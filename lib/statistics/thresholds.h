// SPDX-License-Identifier: Apache-2.0
// From which probability on a label should be predicted, and how good it is at any other.
#pragma once

#include <string>
#include <vector>

#include "statistics/evaluated_samples.h"

namespace stoker::statistics {

/// The threshold that is best on these samples, which flatters it: take it to other samples.
struct BestThreshold {
  double threshold = 0.5;  ///< probability, between two scores; NaN: nothing to choose by
  double value = 0;        ///< of the figure at that threshold
  double value_now = 0;    ///< at the threshold that was used
};

struct LabelThresholds {
  BestThreshold f1;
  BestThreshold accuracy;           ///< share, 0 to 1
  BestThreshold balanced_accuracy;  ///< mean of the shares of positives and negatives that are right
};

/// One entry per label (binary: one). Of several equal ones the threshold nearest to the one that was used.
std::vector<LabelThresholds> best_thresholds(const EvaluatedSamples& samples);

/// One label, or all of them taken together, at all thresholds.
struct LabelCurve {
  int64_t label = -1;  ///< -1: all
  int64_t positives = 0;
  std::vector<double> recall, precision;  ///< by falling threshold, recall ascending; at most kCurvePoints
  std::vector<double> threshold, f1;      ///< at even steps from 0 to 1
};
inline constexpr size_t kCurvePoints = 101;

/// Of labels that have a positive and a negative: all together, where there are several, then at most `most` of them,
/// those with most positives first.
std::vector<LabelCurve> label_curves(const EvaluatedSamples& samples, size_t most);

}  // namespace stoker::statistics
