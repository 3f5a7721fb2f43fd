// SPDX-License-Identifier: Apache-2.0
// Numbers: the mean over targets of a loss of scaled differences; errors in the unit of the targets.
#include <limits>

#include "engine/task/metrics.h"
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
  config::Loss loss_;
  TargetScaling scaling_;
};

}  // namespace

std::unique_ptr<Task> make_regression_task(const TaskSpec& spec, torch::Device device) {
  return std::make_unique<RegressionTask>(spec, device);
}

// Yaw, pitch and roll in degrees, either as three numbers, or as the expectation over bins that are
// classified as well (Ruiz, Chong, Rehg 2018, "Fine-Grained Head Pose Estimation Without Keypoints"; there
// the loss of the expectation is of degrees, here of scaled degrees, and bins stand for their centres).

namespace {

using config::EvalMetric;

constexpr int64_t kAngles = 3;
constexpr const char* kAngleNames[] = {"yaw", "pitch", "roll"};

/// The meaning of the network's outputs.
class PoseHead {
 public:
  PoseHead(const config::ResolvedTaskOptions& options, torch::Device device)
      : bins_(options.pose_head == config::PoseHead::binned ? options.pose_bins : 0),
        range_(options.pose_range),
        scaling_(options, device) {
    if (bins_ == 0) return;
    centres_ = (torch::arange(bins_, at::kDouble) + 0.5) * (2 * range_ / static_cast<double>(bins_)) - range_;
    centres_ = centres_.to(at::kFloat).to(device);
  }

  bool is_binned() const { return bins_ > 0; }
  int64_t num_outputs() const { return bins_ > 0 ? kAngles * bins_ : kAngles; }

  /// float32 [B, 3] degrees.
  torch::Tensor angles(const torch::Tensor& outputs) const {
    if (bins_ == 0) return scaling_.unscaled(outputs);
    return (bin_logits(outputs).softmax(2) * centres_).sum(2);
  }
  /// float32 [B, 3, bins]
  torch::Tensor bin_logits(const torch::Tensor& outputs) const {
    return outputs.to(at::kFloat).view({outputs.size(0), kAngles, bins_});
  }
  /// int64 [B, 3] in [0, bins)
  torch::Tensor bins_of(const torch::Tensor& degrees) const {
    const double per_degree = static_cast<double>(bins_) / (2 * range_);
    return ((degrees + range_) * per_degree).floor().clamp(0, static_cast<double>(bins_ - 1)).to(at::kLong);
  }
  const TargetScaling& scaling() const { return scaling_; }

 private:
  int64_t bins_;  // 0: direct
  double range_;  // degrees
  TargetScaling scaling_;
  torch::Tensor centres_;  // float32 [bins] degrees
};

class PoseMetrics : public EvalMetrics {
 public:
  explicit PoseMetrics(const PoseHead& head) : head_(head) {}

  void add(const torch::Tensor& outputs, const data::Batch& batch) override {
    const torch::NoGradGuard no_gradients;
    rows_.add(head_.angles(outputs), batch.targets);
  }

  std::vector<Metric> read() const override {
    const torch::Tensor all = errors();
    const torch::Tensor means = all.mean(1);
    std::vector<Metric> metrics = {metric(EvalMetric::mae, MetricUnit::degrees, means[0].item<double>()),
                                   metric(EvalMetric::rmse, MetricUnit::degrees, means[1].item<double>())};
    for (int64_t i = 0; i < kAngles; ++i) {
      metrics.push_back({std::string("mae_") + kAngleNames[i], MetricUnit::degrees, all[0][i].item<double>()});
    }
    return metrics;
  }

  std::vector<ResultTable> tables(const std::vector<std::string>& names) const override {
    ResultTable table{"per_target", "angle", {"mae", "rmse"}, 0, {}};
    const torch::Tensor all = errors(), means = all.mean(1);
    for (int64_t i = 0; i < kAngles; ++i) {
      table.rows.push_back({names[static_cast<size_t>(i)], {all[0][i].item<double>(), all[1][i].item<double>()}});
    }
    table.rows.push_back({"average", {means[0].item<double>(), means[1].item<double>()}});
    return {table};
  }

 private:
  /// float64 [2, 3] on the host: mae, rmse in degrees.
  torch::Tensor errors() const {
    if (rows_.empty()) return torch::full({2, kAngles}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
    const TargetErrors errors = angle_errors(rows_.predicted(), rows_.truth());
    return torch::stack({errors.mae, errors.rmse}).to(torch::kCPU);
  }

  PoseHead head_;
  GatheredRows rows_;
};

class HeadPoseTask : public Task {
 public:
  HeadPoseTask(const TaskSpec& spec, torch::Device device)
      : head_(spec.options, device),
        loss_(spec.options.loss),
        weight_(spec.options.pose_loss_weight),
        label_smoothing_(spec.label_smoothing) {}

  int64_t num_outputs() const override { return head_.num_outputs(); }

  torch::Tensor training_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    const torch::Tensor differences = angle_difference(head_.angles(outputs), batch.targets) / head_.scaling().scale();
    const torch::Tensor angle_loss = model::regression_loss_sum(differences, loss_) / kAngles;
    if (!head_.is_binned()) return angle_loss;
    const torch::Tensor bins = head_.bins_of(batch.targets).flatten();     // int64 [3 B]
    const torch::Tensor logits = head_.bin_logits(outputs).flatten(0, 1);  // float32 [3 B, bins]
    return model::cross_entropy_sum(logits, bins, label_smoothing_) / kAngles + weight_ * angle_loss;
  }
  torch::Tensor eval_loss_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    return training_loss_sum(outputs, batch);
  }
  Metric score() const override { return metric(EvalMetric::mae, MetricUnit::degrees); }
  torch::Tensor score_sum(const torch::Tensor& outputs, const data::Batch& batch) const override {
    return angle_difference(head_.angles(outputs.detach()), batch.targets).abs().mean(1).sum();
  }
  std::vector<Metric> metrics() const override { return PoseMetrics(head_).read(); }
  std::unique_ptr<EvalMetrics> make_metrics(bool) const override { return std::make_unique<PoseMetrics>(head_); }
  /// [B, 3] degrees: yaw, pitch, roll
  torch::Tensor predictions(const torch::Tensor& outputs) const override { return head_.angles(outputs); }

 private:
  PoseHead head_;
  config::Loss loss_;
  double weight_, label_smoothing_;
};

}  // namespace

std::unique_ptr<Task> make_head_pose_task(const TaskSpec& spec, torch::Device device) {
  return std::make_unique<HeadPoseTask>(spec, device);
}

}  // namespace stoker::engine
