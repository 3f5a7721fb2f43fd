// SPDX-License-Identifier: Apache-2.0
// Labels that an image has or not, one logit each: mean over the labels of the cross entropy of their sigmoids, or of
// another loss. Any of several, or one, which decides between two classes: the logit is that of class 1.
#include <cmath>
#include <utility>

#include "engine/task/metrics.h"
#include "engine/task/task.h"
#include "model/loss.h"

namespace stoker::engine {
namespace {

using config::EvalMetric;
using config::TaskKind;

ResultTable per_class_table(const ClassCounts& positive, int64_t images, const std::vector<std::string>& names) {
  const ClassCounts negative = both_classes(positive, images).front();
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
  BinaryMetrics(std::vector<double> threshold, double temperature)
      : threshold_(std::move(threshold)), temperature_(temperature) {}

  void add(const torch::Tensor& outputs, const data::Batch& batch) override {
    rows_.add(tempered(outputs, temperature_), label_truth(TaskKind::binary, batch));
  }

  std::vector<Metric> read() const override {
    const LabelResults results = label_results(rows_, 1, threshold_);
    const ClassScores scores = scores_of(results.counts[0]);
    std::vector<Metric> metrics = {metric(EvalMetric::accuracy, MetricUnit::percent, 100 * results.accuracy),
                                   metric(EvalMetric::roc_auc, MetricUnit::ratio, results.roc_auc[0]),
                                   metric(EvalMetric::pr_auc, MetricUnit::ratio, results.pr_auc[0]),
                                   metric(EvalMetric::precision, MetricUnit::ratio, scores.precision),
                                   metric(EvalMetric::recall, MetricUnit::ratio, scores.recall),
                                   metric(EvalMetric::f1, MetricUnit::ratio, scores.f1)};
    const std::vector<Metric> agreement = agreement_metrics(both_classes(results.counts[0], results.images));
    metrics.insert(metrics.end(), agreement.begin(), agreement.end());
    return metrics;
  }

  std::vector<ResultTable> tables(const std::vector<std::string>& names) const override {
    const LabelResults results = label_results(rows_, 1, threshold_);
    return {per_class_table(results.counts[0], results.images, names),
            confusion_table(results.counts[0], results.images, names)};
  }

 private:
  const std::vector<double> threshold_;
  const double temperature_;
  GatheredRows rows_;
};

class MultilabelMetrics : public EvalMetrics {
 public:
  MultilabelMetrics(int64_t labels, std::vector<double> threshold, double temperature)
      : labels_(labels), threshold_(std::move(threshold)), temperature_(temperature) {}

  void add(const torch::Tensor& outputs, const data::Batch& batch) override {
    rows_.add(tempered(outputs, temperature_), batch.targets);
  }

  std::vector<Metric> read() const override {
    const LabelResults results = label_results(rows_, labels_, threshold_);
    const ClassScores macro = macro_average(results.counts);
    return {metric(EvalMetric::pr_auc, MetricUnit::ratio, results.mean_pr_auc()),
            metric(EvalMetric::roc_auc, MetricUnit::ratio, results.mean_roc_auc()),
            metric(EvalMetric::f1, MetricUnit::ratio, macro.f1),
            metric(EvalMetric::precision, MetricUnit::ratio, macro.precision),
            metric(EvalMetric::recall, MetricUnit::ratio, macro.recall),
            metric(EvalMetric::f1_micro, MetricUnit::ratio, micro_average(results.counts).f1),
            agreement_metrics(results.counts).front(),
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
  const std::vector<double> threshold_;
  const double temperature_;
  GatheredRows rows_;
};

class LabelTask : public Task {
 public:
  LabelTask(const TaskSpec& spec, torch::Device device)
      : kind_(spec.kind),
        labels_(spec.kind == TaskKind::binary ? 1 : spec.num_classes),
        loss_(spec.options.loss),
        label_smoothing_(spec.label_smoothing),
        threshold_(spec.options.threshold),
        temperature_(spec.options.temperature) {
    const std::vector<double>& weights = spec.options.pos_weight;
    if (!weights.empty()) pos_weight_ = torch::tensor(weights, at::kDouble).to(at::kFloat).to(device);
  }

  int64_t num_outputs() const override { return labels_; }
  torch::Tensor training_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    const torch::Tensor truth = label_truth(kind_, batch);
    const std::vector<double>& numbers = loss_.numbers;
    switch (loss_.kind) {
      case config::LossKind::focal:
        return mean_of_labels(model::sigmoid_focal_sum(outputs, truth, numbers.at(0), pos_weight_, label_smoothing_));
      case config::LossKind::asymmetric:
        return mean_of_labels(model::asymmetric_sum(outputs, truth, numbers.at(0), numbers.at(1), numbers.at(2),
                                                    pos_weight_, label_smoothing_));
      default: return mean_of_labels(model::binary_cross_entropy_sum(outputs, truth, pos_weight_, label_smoothing_));
    }
  }
  torch::Tensor eval_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    return mean_of_labels(
        model::binary_cross_entropy_sum(outputs, label_truth(kind_, batch), {}, /*label_smoothing=*/0));
  }
  Metric score() const override { return metric(EvalMetric::accuracy, MetricUnit::percent); }
  torch::Tensor score_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    const torch::Tensor predicted = reaches(tempered(outputs, temperature_), threshold_);
    return mean_of_labels((predicted == (label_truth(kind_, batch) > 0.5)).sum().to(at::kDouble));
  }
  std::vector<Metric> metrics() const override { return make_metrics(/*with_tables=*/false)->read(); }
  std::unique_ptr<EvalMetrics> make_metrics(bool) const override {
    if (kind_ == TaskKind::binary) return std::make_unique<BinaryMetrics>(threshold_, temperature_);
    return std::make_unique<MultilabelMetrics>(labels_, threshold_, temperature_);
  }
  /// [B, labels]: the probability of each.
  torch::Tensor predictions(const torch::Tensor& outputs) const override {
    return tempered(outputs, temperature_).sigmoid();
  }

 private:
  torch::Tensor mean_of_labels(const torch::Tensor& sum) const {
    return labels_ == 1 ? sum : sum / static_cast<double>(labels_);
  }

  TaskKind kind_;
  int64_t labels_;
  config::Loss loss_;
  double label_smoothing_;
  std::vector<double> threshold_;
  double temperature_;
  torch::Tensor pos_weight_;  // float32 [1] or [labels]; undefined: 1
};

}  // namespace

std::unique_ptr<Task> make_label_task(const TaskSpec& spec, torch::Device device) {
  return std::make_unique<LabelTask>(spec, device);
}

}  // namespace stoker::engine
