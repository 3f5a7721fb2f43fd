// SPDX-License-Identifier: Apache-2.0
// One of several classes: softmax and cross entropy, or another loss; top-1, top-5, and precision, recall and F1 over
// classes.
#include <algorithm>
#include <optional>
#include <tuple>

#include "engine/task/metrics.h"
#include "engine/task/task.h"
#include "model/loss.h"

namespace stoker::engine {
namespace {

using config::EvalMetric;

torch::Tensor top1_hits(const torch::Tensor& logits, const torch::Tensor& labels) {
  return (likeliest(logits) == labels).sum();
}

class MulticlassMetrics : public EvalMetrics {
 public:
  MulticlassMetrics(int64_t classes, torch::Device device, bool with_tables)
      : classes_(classes),
        hits_(torch::zeros({2}, torch::TensorOptions(device).dtype(at::kDouble))),
        per_class_(torch::zeros({3, classes}, torch::TensorOptions(device).dtype(at::kLong))) {
    if (with_tables && !is_sparse()) confusion_ = torch::zeros({classes * classes}, per_class_.options());
    keeps_pairs_ = with_tables && is_sparse();
  }

  void add(const torch::Tensor& logits, const data::Batch& batch) override {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor predicted = likeliest(logits);
    const torch::Tensor hit = predicted == batch.labels;
    hits_[0].add_(hit.sum());
    const int64_t k = std::min<int64_t>(5, logits.size(1));
    const torch::Tensor best = std::get<1>(logits.topk(k, /*dim=*/1));
    hits_[1].add_((best == batch.labels.unsqueeze(1)).sum());
    const torch::Tensor ones = torch::ones_like(predicted);
    per_class_[0].index_put_({batch.labels}, hit.to(at::kLong), /*accumulate=*/true);
    per_class_[1].index_put_({batch.labels}, ones, /*accumulate=*/true);
    per_class_[2].index_put_({predicted}, ones, /*accumulate=*/true);
    const auto pairs = [&] { return batch.labels * classes_ + predicted; };
    if (confusion_.defined()) confusion_.index_put_({pairs()}, ones, /*accumulate=*/true);
    if (keeps_pairs_) pairs_.push_back(pairs());
    images_ += batch.image_count();
  }

  std::vector<Metric> read() const override {
    const torch::Tensor hits = hits_.to(torch::kCPU);
    const double images = static_cast<double>(std::max<int64_t>(1, images_));
    const std::vector<ClassCounts> classes = counts();
    const ClassScores macro = macro_average(classes);
    std::vector<Metric> metrics = {metric(EvalMetric::top1, MetricUnit::percent, 100 * hits[0].item<double>() / images),
                                   metric(EvalMetric::top5, MetricUnit::percent, 100 * hits[1].item<double>() / images),
                                   metric(EvalMetric::precision, MetricUnit::ratio, macro.precision),
                                   metric(EvalMetric::recall, MetricUnit::ratio, macro.recall),
                                   metric(EvalMetric::f1, MetricUnit::ratio, macro.f1)};
    const std::vector<Metric> agreement = agreement_metrics(classes);
    metrics.insert(metrics.end(), agreement.begin(), agreement.end());
    return metrics;
  }

  std::vector<ResultTable> tables(const std::vector<std::string>& names) const override {
    return {per_class_table(names), is_sparse() ? pair_table(names) : confusion_table(names)};
  }

 private:
  std::vector<ClassCounts> counts() const {
    const torch::Tensor host = per_class_.to(torch::kCPU);
    const auto values = host.accessor<int64_t, 2>();
    std::vector<ClassCounts> counts;
    for (int64_t k = 0; k < classes_; ++k) counts.push_back({values[0][k], values[1][k], values[2][k]});
    return counts;
  }

  ResultTable per_class_table(const std::vector<std::string>& names) const {
    ResultTable table{"per_class", "class", {"images", "predicted", "precision", "recall", "f1"}, 2, {}};
    const std::vector<ClassCounts> classes = counts();
    for (size_t k = 0; k < classes.size(); ++k) {
      const ClassScores scores = scores_of(classes[k]);
      table.rows.push_back({names[k],
                            {static_cast<double>(classes[k].actual), static_cast<double>(classes[k].predicted),
                             scores.precision, scores.recall, scores.f1}});
    }
    const ClassScores macro = macro_average(classes);
    const auto images = static_cast<double>(images_);
    table.rows.push_back({"macro average", {images, images, macro.precision, macro.recall, macro.f1}});
    return table;
  }

  ResultTable confusion_table(const std::vector<std::string>& names) const {
    ResultTable table{"confusion", "true\\predicted", names, names.size(), {}};
    const torch::Tensor host = confusion_.to(torch::kCPU).to(at::kDouble);
    for (int64_t k = 0; k < classes_; ++k) {
      const double* const row = host.data_ptr<double>() + k * classes_;
      table.rows.push_back({names[static_cast<size_t>(k)], {row, row + classes_}});
    }
    return table;
  }

  bool is_sparse() const { return classes_ > kMostInMatrix; }
  /// Only the pairs that occur: a matrix of 100,000 classes would take 80 GB.
  ResultTable pair_table(const std::vector<std::string>& names) const {
    ResultTable table{"confusion_pairs", "true", {"images"}, 1, {}, "predicted"};
    if (pairs_.empty()) return table;
    const torch::Tensor all = std::get<0>(torch::cat(pairs_).to(torch::kCPU).sort());
    const int64_t* const keys = all.data_ptr<int64_t>();
    for (int64_t begin = 0, end = 0; begin < all.numel(); begin = end) {
      for (end = begin + 1; end < all.numel() && keys[end] == keys[begin];) ++end;
      table.rows.push_back({names[static_cast<size_t>(keys[begin] / classes_)],
                            {static_cast<double>(end - begin)},
                            names[static_cast<size_t>(keys[begin] % classes_)]});
    }
    return table;
  }

  int64_t classes_;
  bool keeps_pairs_ = false;
  std::vector<torch::Tensor> pairs_;  // int64 [batch] true class * classes + predicted, of more classes than that
  torch::Tensor hits_;                // float64 [2]: top-1, top-5
  torch::Tensor per_class_;           // int64 [3, classes]: hits, images, predicted
  torch::Tensor confusion_;           // int64 [classes * classes], true class first; undefined when no table is wanted
  int64_t images_ = 0;
};

class MulticlassTask : public Task {
 public:
  MulticlassTask(const TaskSpec& spec, torch::Device device)
      : classes_(spec.num_classes),
        loss_(spec.options.loss),
        label_smoothing_(spec.label_smoothing),
        temperature_(spec.options.temperature),
        device_(device) {
    const std::vector<double>& weights = spec.options.class_weights;
    if (!weights.empty()) class_weights_ = torch::tensor(weights, at::kDouble).to(at::kFloat).to(device);
  }

  int64_t num_outputs() const override { return classes_; }
  torch::Tensor training_loss_sum(const torch::Tensor& logits, const data::Batch& batch) const override {
    switch (loss_.kind) {
      case config::LossKind::bce: return bce_sum(logits, smoothed(batch));
      case config::LossKind::focal:
        return model::focal_sum(logits, batch.labels, loss_.numbers.at(0), label_smoothing_, class_weights_);
      default: return model::cross_entropy_sum(logits, batch.labels, label_smoothing_, class_weights_);
    }
  }
  /// A threshold of bce is one of mixed targets.
  torch::Tensor mixed_loss_sum(const torch::Tensor& logits, const data::Batch& batch, const data::Batch& partners,
                               double share, const torch::Tensor& shares) const override {
    if (loss_.kind != config::LossKind::bce || loss_.numbers.empty()) {
      return Task::mixed_loss_sum(logits, batch, partners, share, shares);
    }
    return bce_sum(logits, shares.defined() ? shares[0] * smoothed(batch) + shares[1] * smoothed(partners)
                                            : share * smoothed(batch) + (1 - share) * smoothed(partners));
  }
  torch::Tensor eval_loss_sum(const torch::Tensor& logits, const data::Batch& batch) const override {
    return model::cross_entropy_sum(logits, batch.labels, /*label_smoothing=*/0);
  }
  Metric score() const override { return metric(EvalMetric::top1, MetricUnit::percent); }
  torch::Tensor score_sum(const torch::Tensor& logits, const data::Batch& batch) const override {
    return top1_hits(logits, batch.labels);
  }
  std::vector<Metric> metrics() const override { return make_metrics(/*with_tables=*/false)->read(); }
  std::unique_ptr<EvalMetrics> make_metrics(bool with_tables) const override {
    return std::make_unique<MulticlassMetrics>(classes_, device_, with_tables);
  }
  torch::Tensor predictions(const torch::Tensor& logits) const override {
    return tempered(logits, temperature_).softmax(1);
  }

 private:
  torch::Tensor smoothed(const data::Batch& batch) const {
    return model::smoothed_classes(batch.labels, classes_, label_smoothing_);
  }
  torch::Tensor bce_sum(const torch::Tensor& logits, const torch::Tensor& wanted) const {
    const std::vector<double>& numbers = loss_.numbers;
    return model::classes_bce_sum(logits, wanted, numbers.empty() ? std::nullopt : std::optional<double>(numbers[0]),
                                  class_weights_);
  }

  int64_t classes_;
  config::Loss loss_;
  double label_smoothing_, temperature_;
  torch::Device device_;
  torch::Tensor class_weights_;  // float32 [classes]; undefined: 1
};

}  // namespace

std::unique_ptr<Task> make_multiclass_task(const TaskSpec& spec, torch::Device device) {
  return std::make_unique<MulticlassTask>(spec, device);
}

}  // namespace stoker::engine
