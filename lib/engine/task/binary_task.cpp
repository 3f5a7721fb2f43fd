// SPDX-License-Identifier: Apache-2.0
// One of two classes from a single logit, that of class 1: cross entropy of the sigmoid; accuracy, areas
// under curves.
#include <cmath>

#include "engine/task/label_metrics.h"
#include "engine/task/task.h"
#include "model/loss.h"

namespace stoker::engine {
namespace {

using config::EvalMetric;

/// Class 1 as float32 [B, 1].
torch::Tensor positives(const data::Batch& batch) { return batch.labels.to(at::kFloat).unsqueeze(1); }

ResultTable per_class_table(const ClassCounts& positive, int64_t images, const std::vector<std::string>& names) {
  // What is not positive is negative, so the counts of class 0 follow.
  const int64_t misses = positive.actual + positive.predicted - positive.hits;
  const ClassCounts negative{images - misses, images - positive.actual, images - positive.predicted};
  ResultTable table{"per_class", "class", {"images", "predicted", "precision", "recall", "f1"}, 2, {}};
  const auto add = [&](const std::string& name, const ClassCounts& counts, const ClassScores& scores) {
    table.rows.push_back({name,
                          {static_cast<double>(counts.actual), static_cast<double>(counts.predicted), scores.precision,
                           scores.recall, scores.f1}});
  };
  add(names[0], negative, scores_of(negative));
  add(names[1], positive, scores_of(positive));
  add("macro average", {0, images, images}, macro_average({negative, positive}));
  return table;
}

ResultTable confusion_table(const ClassCounts& positive, int64_t images, const std::vector<std::string>& names) {
  const auto hits = static_cast<double>(positive.hits);
  const double missed = static_cast<double>(positive.actual) - hits;
  const double false_alarms = static_cast<double>(positive.predicted) - hits;
  const double rest = static_cast<double>(images) - hits - missed - false_alarms;
  return {"confusion", "true\\predicted", names, 2, {{names[0], {rest, false_alarms}}, {names[1], {missed, hits}}}};
}

class BinaryMetrics : public EvalMetrics {
 public:
  explicit BinaryMetrics(double threshold) : threshold_(threshold) {}

  void add(const torch::Tensor& outputs, const data::Batch& batch) override { rows_.add(outputs, positives(batch)); }

  std::vector<Metric> read() const override {
    const LabelResults results = label_results(rows_, 1, threshold_);
    const ClassScores scores = scores_of(results.counts[0]);
    return {metric(EvalMetric::accuracy, MetricUnit::percent, 100 * results.accuracy),
            metric(EvalMetric::roc_auc, MetricUnit::ratio, results.roc_auc[0]),
            metric(EvalMetric::pr_auc, MetricUnit::ratio, results.pr_auc[0]),
            metric(EvalMetric::precision, MetricUnit::ratio, scores.precision),
            metric(EvalMetric::recall, MetricUnit::ratio, scores.recall),
            metric(EvalMetric::f1, MetricUnit::ratio, scores.f1)};
  }

  std::vector<ResultTable> tables(const std::vector<std::string>& names) const override {
    const LabelResults results = label_results(rows_, 1, threshold_);
    return {per_class_table(results.counts[0], results.images, names),
            confusion_table(results.counts[0], results.images, names)};
  }

 private:
  double threshold_;
  GatheredRows rows_;
};

class BinaryTask : public Task {
 public:
  BinaryTask(const TaskSpec& spec, torch::Device device)
      : label_smoothing_(spec.label_smoothing), threshold_(spec.options.threshold) {
    const std::vector<double>& weights = spec.options.pos_weight;
    if (!weights.empty()) pos_weight_ = torch::tensor(weights, at::kDouble).to(at::kFloat).to(device);
  }

  int64_t num_outputs() const override { return 1; }
  torch::Tensor training_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    return model::binary_cross_entropy_sum(outputs, positives(batch), pos_weight_, label_smoothing_);
  }
  torch::Tensor eval_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    return model::binary_cross_entropy_sum(outputs, positives(batch), {}, /*label_smoothing=*/0);
  }
  Metric score() const override { return metric(EvalMetric::accuracy, MetricUnit::percent); }
  torch::Tensor score_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    const torch::Tensor predicted = outputs.squeeze(1) >= std::log(threshold_ / (1 - threshold_));
    return (predicted == (batch.labels == 1)).sum();
  }
  std::vector<Metric> metrics() const override { return BinaryMetrics(threshold_).read(); }
  std::unique_ptr<EvalMetrics> make_metrics(bool) const override { return std::make_unique<BinaryMetrics>(threshold_); }
  /// [B, 1]: the probability of class 1.
  torch::Tensor predictions(const torch::Tensor& outputs) const override { return outputs.sigmoid(); }

 private:
  double label_smoothing_, threshold_;
  torch::Tensor pos_weight_;  // float32 [1]; undefined: 1
};

}  // namespace

std::unique_ptr<Task> make_binary_task(const TaskSpec& spec, torch::Device device) {
  return std::make_unique<BinaryTask>(spec, device);
}

}  // namespace stoker::engine
