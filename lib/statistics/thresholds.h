// SPDX-License-Identifier: Apache-2.0
// From which probability on a label should be predicted.
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

}  // namespace stoker::statistics
