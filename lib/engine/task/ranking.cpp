// SPDX-License-Identifier: Apache-2.0
#include "engine/task/ranking.h"

#include <tuple>

namespace stoker::engine {
namespace {

/// At the last of each group of equal scores: the count itself. [n] -> count of the group before, 0 for the
/// first.
torch::Tensor count_before_group(const torch::Tensor& counts, const torch::Tensor& group_ends) {
  const torch::Tensor at_ends = counts * group_ends;
  const torch::Tensor so_far = std::get<0>(at_ends.cummax(0));  // counts never fall
  return torch::cat({torch::zeros_like(so_far.narrow(0, 0, 1)), so_far.narrow(0, 0, so_far.size(0) - 1)});
}

}  // namespace

RankingAreas ranking_areas(const torch::Tensor& scores, const torch::Tensor& positive) {
  const torch::NoGradGuard no_gradients;
  const int64_t n = scores.size(0);
  const auto [sorted, order] = scores.sort(/*dim=*/0, /*descending=*/true);
  const torch::Tensor is_positive = positive.to(at::kLong).index_select(0, order);  // int64 [n]
  const torch::Tensor hits = is_positive.cumsum(0);                                 // int64 [n]
  const torch::Tensor misses = (1 - is_positive).cumsum(0);                         // int64 [n]
  const torch::Tensor last = torch::ones({1}, is_positive.options());
  const torch::Tensor ends = torch::cat(
      {(sorted.narrow(0, 1, n - 1) != sorted.narrow(0, 0, n - 1)).to(at::kLong), last});  // int64 [n], 0 or 1
  const torch::Tensor hits_before = count_before_group(hits, ends);
  const torch::Tensor misses_before = count_before_group(misses, ends);
  const torch::Tensor positives = hits[n - 1], negatives = misses[n - 1];

  RankingAreas areas;
  // Trapezoids between thresholds, doubled to stay whole.
  const torch::Tensor twice = ((misses - misses_before) * (hits + hits_before) * ends).sum();
  areas.roc_auc = twice.to(at::kDouble) / (2 * positives.to(at::kDouble) * negatives.to(at::kDouble));
  const torch::Tensor precision = hits.to(at::kDouble) / (hits + misses).to(at::kDouble);
  const torch::Tensor new_hits = ((hits - hits_before) * ends).to(at::kDouble);
  areas.pr_auc = (new_hits * precision).sum() / positives.clamp_min(1).to(at::kDouble);
  return areas;
}

}  // namespace stoker::engine
