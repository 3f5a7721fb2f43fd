// SPDX-License-Identifier: Apache-2.0
// How well scores rank positives above negatives where samples count several times. The figures of
// engine/task/ranking.h without tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker::statistics {

struct Areas {
  double roc_auc = 0;  ///< NaN without a positive or a negative
  double pr_auc = 0;   ///< average precision; 0 without a positive
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
