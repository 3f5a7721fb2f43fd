// SPDX-License-Identifier: Apache-2.0
#include "engine/task/label_metrics.h"

#include <cmath>
#include <limits>
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

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void GatheredRows::add(const torch::Tensor& predicted, const torch::Tensor& truth) {
  predicted_.push_back(predicted);
  truth_.push_back(truth);
}

double LabelResults::mean_roc_auc() const {
  double sum = 0;
  int64_t defined = 0;
  for (const double area : roc_auc) {
    if (std::isnan(area)) continue;
    sum += area;
    ++defined;
  }
  return defined > 0 ? sum / static_cast<double>(defined) : kUndefined;
}

double LabelResults::mean_pr_auc() const {
  double sum = 0;
  for (const double area : pr_auc) sum += area;
  return pr_auc.empty() ? kUndefined : sum / static_cast<double>(pr_auc.size());
}

LabelResults label_results(const GatheredRows& rows, int64_t labels, double threshold) {
  const torch::NoGradGuard no_gradients;
  LabelResults results;
  const auto count = static_cast<size_t>(labels);
  results.counts.resize(count);
  results.roc_auc.assign(count, kUndefined);
  results.pr_auc.assign(count, 0);
  if (rows.empty()) return results;

  const torch::Tensor logits = rows.predicted(), truth = rows.truth() > 0.5;        // [n, labels]
  const torch::Tensor predicted = logits >= std::log(threshold / (1 - threshold));  // bool [n, labels]
  const torch::Tensor right = predicted == truth;
  const torch::Tensor sums =
      torch::stack({(predicted & truth).sum(0), truth.sum(0), predicted.sum(0), right.sum(0)}).to(torch::kCPU);
  const auto sum_of = sums.accessor<int64_t, 2>();
  std::vector<torch::Tensor> areas;
  for (int64_t i = 0; i < labels; ++i) {
    const RankingAreas of_label = ranking_areas(logits.select(1, i), truth.select(1, i));
    areas.push_back(of_label.roc_auc);
    areas.push_back(of_label.pr_auc);
  }
  areas.push_back(right.all(1).sum().to(at::kDouble));
  const torch::Tensor host = torch::stack(areas).to(torch::kCPU);  // float64 [2 labels + 1]
  const double* const area = host.data_ptr<double>();

  results.images = logits.size(0);
  int64_t right_answers = 0;
  for (int64_t i = 0; i < labels; ++i) {
    const auto at = static_cast<size_t>(i);
    results.counts[at] = {sum_of[0][i], sum_of[1][i], sum_of[2][i]};
    results.roc_auc[at] = area[2 * i];
    results.pr_auc[at] = area[2 * i + 1];
    right_answers += sum_of[3][i];
  }
  const auto images = static_cast<double>(results.images);
  results.accuracy = static_cast<double>(right_answers) / (images * static_cast<double>(labels));
  results.exact_match = area[2 * labels] / images;
  return results;
}

}  // namespace stoker::engine
