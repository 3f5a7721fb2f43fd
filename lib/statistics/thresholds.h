// SPDX-License-Identifier: Apache-2.0
// From which probability on a label should be predicted, and how good it is at any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "statistics/weighted_metrics.h"

namespace stoker::statistics {

/// The threshold that is best on these samples, which flatters it: take it to other samples.
struct BestThreshold {
  double threshold = 0.5;  ///< probability, between two scores; NaN: nothing to choose by
  double value = 0;        ///< value of the figure at that threshold
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

/// Curves of labels that have a positive and a negative: all together, where there are several, then at most `most` of
/// them, those with most positives first.
std::vector<LabelCurve> label_curves(const EvaluatedSamples& samples, size_t most);

// How well scores rank positives above negatives where samples count several times. The figures of
// engine/task/metrics.h without tensors.

struct Areas {
  double roc_auc = 0;  ///< NaN without a positive or a negative
  double pr_auc = 0;   ///< average precision; NaN without a positive
};

/// Samples of one label, sorted once and weighted many times.
class RankedSamples {
 public:
  /// scores, positive [n], at `stride` from each other.
  RankedSamples(const float* scores, const float* positive, int64_t n, int64_t stride);
  Areas areas(const std::vector<uint32_t>& weights) const;
  /// Calls visit(score, hits, misses) for each distinct score from the highest down: numbers of positives and negatives
  /// that have at least this score, each sample once.
  template <typename Visit>
  void for_each_score(const Visit& visit) const {
    int64_t hits = 0, misses = 0;
    for (size_t i = 0; i < order_.size(); ++i) {
      ++(positive_[i] != 0 ? hits : misses);
      if (i + 1 == order_.size() || score_[i] != score_[i + 1]) visit(score_[i], hits, misses);
    }
  }

 private:
  std::vector<uint32_t> order_;    ///< samples by falling score
  std::vector<float> score_;       ///< in that order
  std::vector<uint8_t> positive_;  ///< the same
};

}  // namespace stoker::statistics
