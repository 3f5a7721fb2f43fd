// SPDX-License-Identifier: Apache-2.0
#include "engine/task/label_metrics.h"

#include <cmath>
#include <limits>

#include "engine/task/ranking.h"

namespace stoker::engine {
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
