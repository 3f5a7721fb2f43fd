// SPDX-License-Identifier: Apache-2.0
// Any of several labels, one logit each: mean over the labels of the cross entropy of their sigmoids.
#include <cmath>

#include "engine/task/label_metrics.h"
#include "engine/task/task.h"
#include "model/loss.h"

namespace stoker::engine {
namespace {

using config::EvalMetric;

class MultilabelMetrics : public EvalMetrics {
 public:
  MultilabelMetrics(int64_t labels, double threshold) : labels_(labels), threshold_(threshold) {}

  void add(const torch::Tensor& outputs, const data::Batch& batch) override { rows_.add(outputs, batch.targets); }

  std::vector<Metric> read() const override {
    const LabelResults results = label_results(rows_, labels_, threshold_);
    const ClassScores macro = macro_average(results.counts);
    return {metric(EvalMetric::pr_auc, MetricUnit::ratio, results.mean_pr_auc()),
            metric(EvalMetric::roc_auc, MetricUnit::ratio, results.mean_roc_auc()),
            metric(EvalMetric::f1, MetricUnit::ratio, macro.f1),
            metric(EvalMetric::precision, MetricUnit::ratio, macro.precision),
            metric(EvalMetric::recall, MetricUnit::ratio, macro.recall),
            metric(EvalMetric::f1_micro, MetricUnit::ratio, micro_average(results.counts).f1),
            metric(EvalMetric::accuracy, MetricUnit::percent, 100 * results.accuracy),
            metric(EvalMetric::exact_match, MetricUnit::percent, 100 * results.exact_match)};
  }

  std::vector<ResultTable> tables(const std::vector<std::string>& names) const override {
    const LabelResults results = label_results(rows_, labels_, threshold_);
    ResultTable table{
        "per_label", "label", {"images", "predicted", "precision", "recall", "f1", "roc_auc", "pr_auc"}, 2, {}};
    ClassCounts sum;
    for (size_t i = 0; i < results.counts.size(); ++i) {
      const ClassCounts& counts = results.counts[i];
      add_row(table, names[i], counts, scores_of(counts), results.roc_auc[i], results.pr_auc[i]);
      sum = {sum.hits + counts.hits, sum.actual + counts.actual, sum.predicted + counts.predicted};
    }
    const double none = std::nan("");
    add_row(table, "macro average", sum, macro_average(results.counts), results.mean_roc_auc(), results.mean_pr_auc());
    add_row(table, "micro average", sum, scores_of(sum), none, none);
    return {table};
  }

 private:
  static void add_row(ResultTable& table, const std::string& name, const ClassCounts& counts, const ClassScores& scores,
                      double roc_auc, double pr_auc) {
    table.rows.push_back({name,
                          {static_cast<double>(counts.actual), static_cast<double>(counts.predicted), scores.precision,
                           scores.recall, scores.f1, roc_auc, pr_auc}});
  }

  int64_t labels_;
  double threshold_;
  GatheredRows rows_;
};

class MultilabelTask : public Task {
 public:
  MultilabelTask(const TaskSpec& spec, torch::Device device)
      : labels_(spec.num_classes), label_smoothing_(spec.label_smoothing), threshold_(spec.options.threshold) {
    const std::vector<double>& weights = spec.options.pos_weight;
    if (!weights.empty()) pos_weight_ = torch::tensor(weights, at::kDouble).to(at::kFloat).to(device);
  }

  int64_t num_outputs() const override { return labels_; }
  torch::Tensor training_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    return model::binary_cross_entropy_sum(outputs, batch.targets, pos_weight_, label_smoothing_) /
           static_cast<double>(labels_);
  }
  torch::Tensor eval_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    return model::binary_cross_entropy_sum(outputs, batch.targets, {}, /*label_smoothing=*/0) /
           static_cast<double>(labels_);
  }
  Metric score() const override { return metric(EvalMetric::accuracy, MetricUnit::percent); }
  torch::Tensor score_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    const torch::Tensor predicted = outputs >= std::log(threshold_ / (1 - threshold_));
    return (predicted == (batch.targets > 0.5)).sum().to(at::kDouble) / static_cast<double>(labels_);
  }
  std::vector<Metric> metrics() const override { return MultilabelMetrics(labels_, threshold_).read(); }
  std::unique_ptr<EvalMetrics> make_metrics(bool) const override {
    return std::make_unique<MultilabelMetrics>(labels_, threshold_);
  }
  /// [B, labels]
  torch::Tensor predictions(const torch::Tensor& outputs) const override { return outputs.sigmoid(); }

 private:
  int64_t labels_;
  double label_smoothing_, threshold_;
  torch::Tensor pos_weight_;  // float32 [1] or [labels]; undefined: 1
};

}  // namespace

std::unique_ptr<Task> make_multilabel_task(const TaskSpec& spec, torch::Device device) {
  return std::make_unique<MultilabelTask>(spec, device);
}

}  // namespace stoker::engine
