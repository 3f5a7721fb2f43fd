// SPDX-License-Identifier: Apache-2.0
// Numbers: the mean over targets of a loss of scaled differences; errors in the unit of the targets.
#include <limits>

#include "engine/task/error_scores.h"
#include "engine/task/label_metrics.h"
#include "engine/task/target_scaling.h"
#include "engine/task/task.h"
#include "model/loss.h"

namespace stoker::engine {
namespace {

using config::EvalMetric;

class RegressionMetrics : public EvalMetrics {
 public:
  RegressionMetrics(int64_t targets, const TargetScaling& scaling) : targets_(targets), scaling_(scaling) {}

  void add(const torch::Tensor& outputs, const data::Batch& batch) override {
    const torch::NoGradGuard no_gradients;
    rows_.add(scaling_.unscaled(outputs), batch.targets);
  }

  std::vector<Metric> read() const override {
    const torch::Tensor means = errors().mean(1);
    return {metric(EvalMetric::mae, MetricUnit::number, means[0].item<double>()),
            metric(EvalMetric::rmse, MetricUnit::number, means[1].item<double>()),
            metric(EvalMetric::r2, MetricUnit::ratio, means[2].item<double>())};
  }

  std::vector<ResultTable> tables(const std::vector<std::string>& names) const override {
    ResultTable table{"per_target", "target", {"mae", "rmse", "r2"}, 0, {}};
    const torch::Tensor all = errors();
    const auto add = [&](const std::string& name, const torch::Tensor& of) {
      table.rows.push_back({name, {of[0].item<double>(), of[1].item<double>(), of[2].item<double>()}});
    };
    for (int64_t i = 0; i < targets_; ++i) add(names[static_cast<size_t>(i)], all.select(1, i));
    add("average", all.mean(1));
    return {table};
  }

 private:
  /// float64 [3, targets] on the host: mae, rmse, r2.
  torch::Tensor errors() const {
    if (rows_.empty()) return torch::full({3, targets_}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
    const TargetErrors errors = target_errors(rows_.predicted(), rows_.truth());
    return torch::stack({errors.mae, errors.rmse, errors.r2}).to(torch::kCPU);
  }

  int64_t targets_;
  TargetScaling scaling_;
  GatheredRows rows_;
};

class RegressionTask : public Task {
 public:
  RegressionTask(const TaskSpec& spec, torch::Device device)
      : targets_(spec.num_classes), loss_(spec.options.loss), scaling_(spec.options, device) {}

  int64_t num_outputs() const override { return targets_; }
  torch::Tensor training_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    const torch::Tensor differences = outputs.to(at::kFloat) - scaling_.scaled(batch.targets);
    return model::regression_loss_sum(differences, loss_) / static_cast<double>(targets_);
  }
  torch::Tensor eval_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    return training_loss_sum(outputs, batch);
  }
  Metric score() const override { return metric(EvalMetric::mae, MetricUnit::number); }
  torch::Tensor score_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    return (scaling_.unscaled(outputs.detach()) - batch.targets).abs().mean(1).sum();
  }
  std::vector<Metric> metrics() const override { return RegressionMetrics(targets_, scaling_).read(); }
  std::unique_ptr<EvalMetrics> make_metrics(bool) const override {
    return std::make_unique<RegressionMetrics>(targets_, scaling_);
  }
  /// [B, targets] in their own units
  torch::Tensor predictions(const torch::Tensor& outputs) const override { return scaling_.unscaled(outputs); }

 private:
  int64_t targets_;
  config::RegressionLoss loss_;
  TargetScaling scaling_;
};

}  // namespace

std::unique_ptr<Task> make_regression_task(const TaskSpec& spec, torch::Device device) {
  return std::make_unique<RegressionTask>(spec, device);
}

}  // namespace stoker::engine
