// SPDX-License-Identifier: Apache-2.0
// How well scores rank positives above negatives: areas under the ROC curve and under precision over recall.
// Exact: every distinct score is a threshold, equal scores stand together.
#pragma once

#include <torch/types.h>

namespace stoker::engine {

/// Areas, float64 [] on the device of the scores; computed without a host sync.
struct RankingAreas {
  /// Probability that a positive scores above a negative, ties counting half (Mann-Whitney; Fawcett 2006).
  /// NaN when there is no positive or no negative.
  torch::Tensor roc_auc;
  /// Average precision: sum over thresholds of (R_n - R_(n-1)) P_n, without interpolation, as scikit-learn
  /// has it. 0 when there is no positive.
  torch::Tensor pr_auc;
};

/// scores float [n], n > 0, no NaN; positive [n], bool or 0 and 1.
RankingAreas ranking_areas(const torch::Tensor& scores, const torch::Tensor& positive);

}  // namespace stoker::engine
