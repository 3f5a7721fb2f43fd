// SPDX-License-Identifier: Apache-2.0
#include "statistics/ranking.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace stoker::statistics {

RankedSamples::RankedSamples(const float* scores, const float* positive, int64_t n, int64_t stride)
    : order_(static_cast<size_t>(n)) {
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](uint32_t a, uint32_t b) { return scores[a * stride] > scores[b * stride]; });
  for (const uint32_t sample : order_) {
    score_.push_back(scores[sample * stride]);
    positive_.push_back(positive[sample * stride] > 0.5f ? 1 : 0);
  }
}

Areas RankedSamples::areas(const std::vector<uint32_t>& weights) const {
  double hits = 0, misses = 0, hits_before = 0, misses_before = 0, twice_roc = 0, pr = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    (positive_[i] != 0 ? hits : misses) += weights[order_[i]];
    if (i + 1 < order_.size() && score_[i] == score_[i + 1]) continue;
    twice_roc += (misses - misses_before) * (hits + hits_before);
    if (hits > hits_before) pr += (hits - hits_before) * hits / (hits + misses);
    hits_before = hits;
    misses_before = misses;
  }
  Areas areas;
  areas.roc_auc = hits > 0 && misses > 0 ? twice_roc / (2 * hits * misses) : std::numeric_limits<double>::quiet_NaN();
  areas.pr_auc = hits > 0 ? pr / hits : 0;
  return areas;
}

}  // namespace stoker::statistics
