// SPDX-License-Identifier: Apache-2.0
#include "engine/task/metrics.h"

#include <cmath>
#include <limits>
#include <tuple>

#include "engine/run/run_progress.h"
#include "engine/task/task.h"

namespace stoker::engine {

namespace {

statistics::Agreement agreement_of_counts(const std::vector<ClassCounts>& classes) {
  std::vector<statistics::ClassSums> sums;
  for (const ClassCounts& of : classes) {
    sums.push_back({static_cast<double>(of.hits), static_cast<double>(of.actual), static_cast<double>(of.predicted)});
  }
  return statistics::agreement_of(sums);
}

}  // namespace

std::vector<Metric> agreement_metrics(const std::vector<ClassCounts>& classes) {
  using config::EvalMetric;
  const statistics::Agreement agreement = agreement_of_counts(classes);
  return {metric(EvalMetric::f1_weighted, MetricUnit::ratio, agreement.f1_weighted),
          metric(EvalMetric::balanced_accuracy, MetricUnit::ratio, agreement.balanced_accuracy),
          metric(EvalMetric::mcc, MetricUnit::ratio, agreement.mcc),
          metric(EvalMetric::kappa, MetricUnit::ratio, agreement.kappa)};
}

std::vector<ClassCounts> both_classes(const ClassCounts& positive, int64_t images) {
  const int64_t misses = positive.actual + positive.predicted - positive.hits;
  return {{images - misses, images - positive.actual, images - positive.predicted}, positive};
}

SumValues epoch_sums(const RunProgress& at) { return {at.epoch_loss_sum, at.epoch_score_sum, at.epoch_images}; }

void set_epoch_sums(const SumValues& sums, RunProgress& at) {
  at.epoch_loss_sum = sums.loss_sum;
  at.epoch_score_sum = sums.score_sum;
  at.epoch_images = sums.images;
}

void RunningSums::restore(const SumValues& values) {
  sums_ = torch::tensor({values.loss_sum, values.score_sum}, at::kDouble).to(device_);
  images_ = values.images;
}

void RunningSums::add(const torch::Tensor& loss_sum, const torch::Tensor& score_sum, int64_t images) {
  const torch::NoGradGuard no_gradients;
  sums_[0].add_(loss_sum.detach());
  if (score_sum.defined()) sums_[1].add_(score_sum.detach());
  images_ += images;
}

void RunningSums::add(const RunningSums& other) {
  sums_.add_(other.sums_);
  images_ += other.images_;
}

RunningSums RunningSums::copy() const {
  RunningSums other = *this;
  other.sums_ = sums_.clone();
  return other;
}

SumValues RunningSums::read() const {
  const torch::Tensor host = sums_.to(torch::kCPU);
  return read(host.data_ptr<double>());
}

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
  areas.pr_auc = (new_hits * precision).sum() / positives.to(at::kDouble);
  return areas;
}

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void GatheredRows::add(const torch::Tensor& predicted, const torch::Tensor& truth) {
  predicted_.push_back(predicted);
  truth_.push_back(truth);
}

namespace {

/// Undefined ones are left out; NaN where there is no other.
double mean_of_defined(const std::vector<double>& areas) {
  double sum = 0;
  int64_t defined = 0;
  for (const double area : areas) {
    if (std::isnan(area)) continue;
    sum += area;
    ++defined;
  }
  return defined > 0 ? sum / static_cast<double>(defined) : kUndefined;
}

}  // namespace

double LabelResults::mean_roc_auc() const { return mean_of_defined(roc_auc); }

double LabelResults::mean_pr_auc() const { return mean_of_defined(pr_auc); }

torch::Tensor label_truth(config::TaskKind kind, const data::Batch& batch) {
  return kind == config::TaskKind::binary ? batch.labels.to(at::kFloat).unsqueeze(1) : batch.targets;
}

torch::Tensor reaches(const torch::Tensor& logits, const std::vector<double>& thresholds) {
  const auto logit_of = [](double probability) { return std::log(probability / (1 - probability)); };
  if (thresholds.size() == 1) return logits >= logit_of(thresholds.front());
  std::vector<double> least;
  for (const double threshold : thresholds) least.push_back(logit_of(threshold));
  return logits >= torch::tensor(least, at::kDouble).to(at::kFloat).to(logits.device());
}

LabelResults label_results(const GatheredRows& rows, int64_t labels, const std::vector<double>& thresholds) {
  const torch::NoGradGuard no_gradients;
  LabelResults results;
  const auto count = static_cast<size_t>(labels);
  results.counts.resize(count);
  results.roc_auc.assign(count, kUndefined);
  results.pr_auc.assign(count, kUndefined);
  if (rows.empty()) return results;

  const torch::Tensor logits = rows.predicted(), truth = rows.truth() > 0.5;  // [n, labels]
  const torch::Tensor predicted = reaches(logits, thresholds);
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

namespace {

double ratio_or_zero(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

ClassScores scores_of(const ClassCounts& counts) {
  return {ratio_or_zero(counts.hits, counts.predicted), ratio_or_zero(counts.hits, counts.actual),
          ratio_or_zero(2 * counts.hits, counts.actual + counts.predicted)};
}

ClassScores macro_average(const std::vector<ClassCounts>& classes) {
  ClassScores mean;
  for (const ClassCounts& counts : classes) {
    const ClassScores scores = scores_of(counts);
    mean.precision += scores.precision;
    mean.recall += scores.recall;
    mean.f1 += scores.f1;
  }
  const auto n = static_cast<double>(classes.empty() ? 1 : classes.size());
  return {mean.precision / n, mean.recall / n, mean.f1 / n};
}

ClassScores micro_average(const std::vector<ClassCounts>& classes) {
  ClassCounts sum;
  for (const ClassCounts& counts : classes) {
    sum.hits += counts.hits;
    sum.actual += counts.actual;
    sum.predicted += counts.predicted;
  }
  return scores_of(sum);
}

namespace {

TargetErrors errors_of(const torch::Tensor& differences) {
  return {differences.abs().mean(0), differences.square().mean(0).sqrt(), {}};
}

}  // namespace

TargetErrors target_errors(const torch::Tensor& predicted, const torch::Tensor& truth) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor wanted = truth.to(at::kDouble);                  // [n, T]
  const torch::Tensor residuals = wanted - predicted.to(at::kDouble);  // [n, T]
  TargetErrors errors = errors_of(residuals);
  const torch::Tensor unexplained = residuals.square().sum(0);
  const torch::Tensor spread = (wanted - wanted.mean(0)).square().sum(0);
  const torch::Tensor exact = (unexplained == 0).to(at::kDouble);
  const torch::Tensor constant = wanted.amax(0) == wanted.amin(0);  // unlike a mean that was rounded
  errors.r2 = torch::where(constant, exact, 1 - unexplained / spread);
  return errors;
}

torch::Tensor angle_difference(const torch::Tensor& a, const torch::Tensor& b) {
  constexpr double kTurn = 360;
  const torch::Tensor difference = a - b;
  return difference - kTurn * torch::round(difference.detach() / kTurn);
}

TargetErrors angle_errors(const torch::Tensor& predicted, const torch::Tensor& truth) {
  const torch::NoGradGuard no_gradients;
  return errors_of(angle_difference(predicted.to(at::kDouble), truth.to(at::kDouble)));
}

}  // namespace stoker::engine
