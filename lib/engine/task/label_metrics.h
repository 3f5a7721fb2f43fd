// SPDX-License-Identifier: Apache-2.0
// Results of yes-or-no labels, one (binary) or several (multilabel), gathered on the device and scored at the
// end.
#pragma once

#include <torch/types.h>

#include <vector>

#include "engine/task/count_scores.h"

namespace stoker::engine {

// How well scores rank positives above negatives: areas under the ROC curve and under precision over recall.
// Exact: every distinct score is a threshold, equal scores stand together.

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

/// One row per sample, kept until it is read: 8 bytes per sample and label.
class GatheredRows {
 public:
  /// Both float [B, T] on the device; not copied, so that they must not be written to afterwards. No host
  /// sync.
  void add(const torch::Tensor& predicted, const torch::Tensor& truth);
  bool empty() const { return predicted_.empty(); }
  torch::Tensor predicted() const { return torch::cat(predicted_); }  ///< [n, T]; not when empty
  torch::Tensor truth() const { return torch::cat(truth_); }

 private:
  std::vector<torch::Tensor> predicted_, truth_;
};

struct LabelResults {
  int64_t images = 0;
  std::vector<ClassCounts> counts;      ///< [labels]
  std::vector<double> roc_auc, pr_auc;  ///< [labels]; see ranking.h
  double accuracy = 0;                  ///< share of single answers that are right
  double exact_match = 0;               ///< share of samples with all answers right

  double mean_roc_auc() const;  ///< over labels that have positives and negatives; NaN when none has
  double mean_pr_auc() const;   ///< over all labels
};

/// Logits against 0 and 1. Positive is what has at least the probability `threshold`. Two host syncs.
LabelResults label_results(const GatheredRows& rows, int64_t labels, double threshold);

}  // namespace stoker::engine
