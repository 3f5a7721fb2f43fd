// SPDX-License-Identifier: Apache-2.0
// The losses of the tasks. Golden numbers are torch's (torch.nn.functional in Python,
// float32).
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "config/task_facts.h"
#include "engine/task/task.h"

namespace stoker::engine {
namespace {

using config::LossKind;
using config::TaskKind;

TaskSpec spec_of(TaskKind kind, int64_t classes) {
  TaskSpec spec;
  spec.kind = kind;
  spec.num_classes = classes;
  return spec;
}

data::Batch batch_of_labels(std::vector<int64_t> labels) {
  data::Batch batch;
  batch.labels = torch::tensor(labels, at::kLong);
  batch.targets = torch::empty({batch.labels.size(0), 0});
  return batch;
}

data::Batch batch_of_targets(const torch::Tensor& targets) {
  data::Batch batch;
  batch.labels = torch::full({targets.size(0)}, -1, at::kLong);
  batch.targets = targets;
  return batch;
}

double training_loss(const TaskSpec& spec, const torch::Tensor& outputs, const data::Batch& batch) {
  return make_task(spec, torch::kCPU)->training_loss_sum(outputs, batch).item<double>();
}

TEST(BinaryLossTest, IsTheCrossEntropyOfOneLogit) {
  const torch::Tensor outputs = torch::tensor({0.5f, -1.25f, 2.0f, 0.0f}).unsqueeze(1);
  const data::Batch batch = batch_of_labels({1, 0, 0, 1});
  TaskSpec spec = spec_of(TaskKind::binary, 2);
  EXPECT_EQ(make_task(spec, torch::kCPU)->num_outputs(), 1);
  EXPECT_NEAR(training_loss(spec, outputs, batch), 3.5460813, 1e-6);
  spec.label_smoothing = 0.1;
  EXPECT_NEAR(training_loss(spec, outputs, batch), 3.5335813, 1e-6);
  spec.label_smoothing = 0;
  spec.options.pos_weight = std::vector<double>{3};
  EXPECT_NEAR(training_loss(spec, outputs, batch), 5.8805294, 1e-6);
  EXPECT_NEAR(make_task(spec, torch::kCPU)->eval_loss_sum(outputs, batch).item<double>(), 3.5460813, 1e-6);
}

TEST(MultilabelLossTest, IsTheMeanOverLabelsWithAPositiveWeightEach) {
  const torch::Tensor outputs = torch::tensor({0.5f, -1.0f, 1.5f, 0.25f}).view({2, 2});
  const data::Batch batch = batch_of_targets(torch::tensor({1.0f, 0.0f, 0.0f, 1.0f}).view({2, 2}));
  TaskSpec spec = spec_of(TaskKind::multilabel, 2);
  EXPECT_NEAR(training_loss(spec, outputs, batch), 1.5323457, 1e-6);
  spec.options.pos_weight = std::vector<double>{2, 5};
  EXPECT_NEAR(training_loss(spec, outputs, batch), 2.9212632, 1e-6);
}

TEST(RegressionLossTest, IsTheMeanOverTargetsOfScaledDifferences) {
  const torch::Tensor outputs = torch::tensor({0.5f, -1.0f, 2.5f, 0.25f}).view({2, 2});
  const data::Batch batch = batch_of_targets(torch::tensor({10.0f, 7.0f, 12.0f, 3.0f}).view({2, 2}));
  TaskSpec spec = spec_of(TaskKind::regression, 2);
  spec.options.target_mean = {10, 5};
  spec.options.target_scale = {2, 4};
  const std::pair<config::Loss, double> golden[] = {{{LossKind::l1}, 2.125},
                                                    {{LossKind::l2}, 2.65625},
                                                    {{LossKind::smooth_l1}, 1.203125},
                                                    {{LossKind::huber, {1}}, 1.203125},
                                                    {{LossKind::huber, {0.5}}, 0.8125}};
  for (const auto& [loss, wanted] : golden) {
    spec.options.loss = loss;
    EXPECT_NEAR(training_loss(spec, outputs, batch), wanted, 1e-6) << config::loss_name(loss.kind);
  }
  const torch::Tensor predictions = make_task(spec, torch::kCPU)->predictions(outputs);
  EXPECT_TRUE(torch::equal(predictions, torch::tensor({11.0f, 1.0f, 15.0f, 6.0f}).view({2, 2})));
}

// Losses by their definitions, one number after another.

const std::vector<double> kLogits = {0.5, -1.0, 2.0, 0.25, 1.5, -0.75};  // [2, 3]

torch::Tensor two_rows() { return torch::tensor(kLogits, at::kFloat).view({2, 3}); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double at_logit(double x, double target) {  // cross entropy of a sigmoid
  return -target * std::log(sigmoid(x)) - (1 - target) * std::log(1 - sigmoid(x));
}

TEST(FocalLossTest, OfClassesWeighsCrossEntropyByWhatTheSoftmaxLacks) {
  const int64_t labels[] = {2, 0};
  const std::vector<double> weights = {0.5, 2.0, 1.25};
  TaskSpec spec = spec_of(TaskKind::multiclass, 3);
  for (const double gamma : {0.0, 0.5, 2.0, 3.5}) {
    for (const double smoothing : {0.0, 0.1}) {
      double wanted = 0;
      for (size_t row = 0; row < 2; ++row) {
        double sum = 0;
        for (size_t k = 0; k < 3; ++k) sum += std::exp(kLogits[3 * row + k]);
        for (size_t k = 0; k < 3; ++k) {
          const double p = std::exp(kLogits[3 * row + k]) / sum;
          const double target = (k == static_cast<size_t>(labels[row]) ? 1 - smoothing : 0) + smoothing / 3;
          wanted -= weights[k] * target * std::pow(1 - p, gamma) * std::log(p);
        }
      }
      spec.label_smoothing = smoothing;
      spec.options.class_weights = weights;
      spec.options.loss = {LossKind::focal, {gamma}};
      EXPECT_NEAR(training_loss(spec, two_rows(), batch_of_labels({2, 0})), wanted, 1e-5) << gamma << smoothing;
      if (gamma > 0) continue;
      spec.options.loss = {LossKind::cross_entropy};
      EXPECT_NEAR(training_loss(spec, two_rows(), batch_of_labels({2, 0})), wanted, 1e-5) << "without gamma";
    }
  }
}

TEST(FocalLossTest, OfLabelsIsTorchvisionsSigmoidFocalLoss) {
  const std::vector<double> targets = {1, 0, 0, 1, 1, 0};
  const data::Batch batch = batch_of_targets(torch::tensor(targets, at::kFloat).view({2, 3}));
  TaskSpec spec = spec_of(TaskKind::multilabel, 3);
  constexpr double kAlpha = 0.25;
  for (const double gamma : {0.0, 2.0}) {
    double wanted = 0, weighed = 0;
    for (size_t i = 0; i < targets.size(); ++i) {
      const double p = sigmoid(kLogits[i]), p_t = p * targets[i] + (1 - p) * (1 - targets[i]);
      const double loss = at_logit(kLogits[i], targets[i]) * std::pow(1 - p_t, gamma);
      wanted += loss / 3;
      weighed += (kAlpha * targets[i] + (1 - kAlpha) * (1 - targets[i])) * loss / 3;
    }
    spec.options.loss = {LossKind::focal, {gamma}};
    spec.options.pos_weight = {};
    EXPECT_NEAR(training_loss(spec, two_rows(), batch), wanted, 1e-6) << gamma;
    spec.options.pos_weight = std::vector<double>{kAlpha / (1 - kAlpha)};
    EXPECT_NEAR((1 - kAlpha) * training_loss(spec, two_rows(), batch), weighed, 1e-6) << gamma;
  }
  TaskSpec binary = spec_of(TaskKind::binary, 2);
  binary.options.loss = {LossKind::focal, {2}};
  const torch::Tensor one = torch::tensor({0.5f, -1.25f}).unsqueeze(1);
  const double wanted =
      at_logit(0.5, 1) * std::pow(1 - sigmoid(0.5), 2) + at_logit(-1.25, 0) * std::pow(sigmoid(-1.25), 2);
  EXPECT_NEAR(training_loss(binary, one, batch_of_labels({1, 0})), wanted, 1e-6);
}

TEST(AsymmetricLossTest, ShiftsNegativesAndHasAGammaForEachKind) {
  const std::vector<double> targets = {1, 0, 0, 1, 1, 0};
  const data::Batch batch = batch_of_targets(torch::tensor(targets, at::kFloat).view({2, 3}));
  TaskSpec spec = spec_of(TaskKind::multilabel, 3);
  const std::vector<double> kNumbers[] = {{4, 1, 0.05}, {2, 0, 0}, {0, 0, 0}, {1, 2, 0.9}};
  for (const std::vector<double>& numbers : kNumbers) {
    double wanted = 0;
    for (size_t i = 0; i < targets.size(); ++i) {
      const double p = sigmoid(kLogits[i]), shifted = std::max(p - numbers[2], 0.0);
      wanted -= targets[i] > 0 ? std::pow(1 - p, numbers[1]) * std::log(p) / 3
                               : std::pow(shifted, numbers[0]) * std::log(1 - shifted) / 3;
    }
    spec.options.loss = {LossKind::asymmetric, numbers};
    EXPECT_NEAR(training_loss(spec, two_rows(), batch), wanted, 1e-5) << numbers[0];
  }
}

TEST(BceLossTest, OfClassesIsTimmsWithSmoothingAndThreshold) {
  const int64_t labels[] = {2, 0}, partners[] = {0, 2};
  TaskSpec spec = spec_of(TaskKind::multiclass, 3);
  spec.label_smoothing = 0.1;
  const data::Batch own = batch_of_labels({2, 0}), other = batch_of_labels({0, 2});
  for (const double share : {1.0, 0.85, 0.5}) {
    for (const double threshold : {-1.0, 0.0, 0.2}) {
      double wanted = 0;
      for (size_t row = 0; row < 2; ++row) {
        for (size_t k = 0; k < 3; ++k) {
          const double off = 0.1 / 3, on = 0.9 + off;
          double target = share * (k == static_cast<size_t>(labels[row]) ? on : off) +
                          (1 - share) * (k == static_cast<size_t>(partners[row]) ? on : off);
          if (threshold >= 0) target = target > threshold ? 1 : 0;
          wanted += at_logit(kLogits[3 * row + k], target) / 3;
        }
      }
      spec.options.loss = {LossKind::bce, threshold < 0 ? std::vector<double>{} : std::vector<double>{threshold}};
      const auto task = make_task(spec, torch::kCPU);
      const torch::Tensor loss = task->mixed_loss_sum(two_rows(), own, other, share, {});
      EXPECT_NEAR(loss.item<double>(), wanted, 1e-5) << share << " " << threshold;
      const torch::Tensor shares = torch::tensor({share, 1 - share}, at::kFloat);
      EXPECT_NEAR(task->mixed_loss_sum(two_rows(), own, other, share, shares).item<double>(), wanted, 1e-5);
      EXPECT_NEAR(share < 1 ? wanted : training_loss(spec, two_rows(), own), wanted, 1e-5) << threshold;
    }
  }
}

TEST(EveryLossTest, HasFiniteGradientsWhereTheNetworkIsCertain) {
  const torch::Tensor certain = torch::tensor({90.0f, -90.0f, 0.0f, -90.0f, 90.0f, 1.0f}).view({2, 3});
  data::Batch batch = batch_of_labels({0, 0});
  batch.targets = torch::tensor({1.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f}).view({2, 3});
  for (const TaskKind kind : {TaskKind::multiclass, TaskKind::multilabel, TaskKind::regression}) {
    for (const LossKind loss : config::losses_of(kind)) {
      for (const double gamma : {0.0, 0.5, 2.0}) {
        TaskSpec spec = spec_of(kind, 3);
        spec.options.loss = {loss, {gamma, gamma, 0.05}};
        if (loss == LossKind::huber) spec.options.loss.numbers = {1};
        torch::Tensor outputs = certain.clone().requires_grad_();
        const auto task = make_task(spec, torch::kCPU);
        task->training_loss_sum(outputs, batch).backward();
        EXPECT_TRUE(outputs.grad().isfinite().all().item<bool>()) << config::loss_name(loss) << " " << gamma;
        const double evaluated = task->eval_loss_sum(outputs, batch).item<double>();
        spec.options.loss = {};
        if (kind == TaskKind::regression) continue;
        EXPECT_EQ(evaluated, make_task(spec, torch::kCPU)->eval_loss_sum(outputs, batch).item<double>());
      }
    }
  }
}

TEST(HeadPoseLossTest, DirectAnglesDifferByTheShorterWayRound) {
  const torch::Tensor outputs = torch::tensor({0.5f, -0.25f, 1.0f, -3.9f, 0.1f, 0.2f}).view({2, 3});
  const data::Batch batch = batch_of_targets(torch::tensor({20.0f, -10.0f, 50.0f, 178.0f, 5.0f, 0.0f}).view({2, 3}));
  TaskSpec spec = spec_of(TaskKind::head_pose, 3);
  spec.options.target_scale = {45};
  spec.options.loss = {LossKind::l2};
  EXPECT_NEAR(training_loss(spec, outputs, batch), 0.02573046, 1e-6);
  spec.options.loss = {LossKind::smooth_l1};
  EXPECT_NEAR(training_loss(spec, outputs, batch), 0.01286523, 1e-6);
}

TEST(HeadPoseLossTest, TheGradientIsThatOfThePlainDifference) {
  torch::Tensor outputs = torch::tensor({-3.9f, 0.0f, 0.0f}).view({1, 3}).requires_grad_();
  TaskSpec spec = spec_of(TaskKind::head_pose, 3);
  spec.options.target_scale = {45};
  spec.options.loss = {LossKind::l2};
  const data::Batch batch = batch_of_targets(torch::tensor({178.0f, 0.0f, 0.0f}).view({1, 3}));
  make_task(spec, torch::kCPU)->training_loss_sum(outputs, batch).backward();
  // -175.5 degrees are 6.5 beyond 178: 2 * (6.5 / 45) / 3.
  EXPECT_NEAR(outputs.grad()[0][0].item<double>(), 2 * (6.5 / 45) / 3, 1e-5);
}

TEST(HeadPoseLossTest, BinsAreClassifiedAndTheirExpectationIsTheAngle) {
  const torch::Tensor outputs =
      torch::tensor({-0.125f, 0.375f, -0.75f,  0.125f, 0.625f, -0.25f, 1.625f, -1.625f, 0.375f, 0.625f, 0.75f, 0.0f,
                     -0.375f, 0.5f,   -0.125f, -1.75f, 0.5f,   0.25f,  0.375f, 1.375f,  0.375f, 0.0f,   0.75f, -0.125f})
          .view({2, 12});
  const data::Batch batch = batch_of_targets(torch::tensor({20.0f, -10.0f, 60.0f, -140.0f, 5.0f, 0.0f}).view({2, 3}));
  TaskSpec spec = spec_of(TaskKind::head_pose, 3);
  spec.options.pose_head = config::PoseHead::binned;
  spec.options.pose_bins = 4;
  spec.options.pose_range = 100;
  spec.options.pose_loss_weight = 0.5;
  spec.options.target_scale = {45};
  spec.options.loss = {LossKind::l2};
  const auto task = make_task(spec, torch::kCPU);
  EXPECT_EQ(task->num_outputs(), 12);
  EXPECT_NEAR(task->training_loss_sum(outputs, batch).item<double>(), 5.1821966, 1e-5);
  const torch::Tensor angles = task->predictions(outputs);
  EXPECT_NEAR(angles[0][0].item<double>(), -1.4625282, 1e-4);
  EXPECT_NEAR(angles[1][1].item<double>(), 21.2459240, 1e-4);
}

TEST(TaskTest, EveryMetricThatMayDecideIsComputed) {
  for (const TaskKind kind :
       {TaskKind::multiclass, TaskKind::binary, TaskKind::multilabel, TaskKind::regression, TaskKind::head_pose}) {
    const auto task = make_task(spec_of(kind, kind == TaskKind::binary ? 2 : 3), torch::kCPU);
    const std::vector<Metric> metrics = task->metrics();
    for (const config::EvalMetric wanted : config::eval_metrics_of(kind)) {
      if (wanted == config::EvalMetric::loss) continue;
      const std::string name = metric(wanted, MetricUnit::number).name;
      EXPECT_EQ(std::count_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; }), 1)
          << config::task_name(kind) << " " << name;
    }
    EXPECT_EQ(task->make_metrics(false)->read().size(), metrics.size());
  }
}

TEST(TaskTest, TheTrainingScoreOfABatchIsTheMetricsOfIt) {
  torch::manual_seed(1);
  for (const TaskKind kind :
       {TaskKind::multiclass, TaskKind::binary, TaskKind::multilabel, TaskKind::regression, TaskKind::head_pose}) {
    const auto task = make_task(spec_of(kind, kind == TaskKind::binary ? 2 : 3), torch::kCPU);
    data::Batch batch;
    batch.labels = torch::randint(2, {11}, at::kLong);
    batch.targets = torch::randint(2, {11, 3}, at::kFloat);
    const torch::Tensor outputs = torch::randn({11, task->num_outputs()});
    const auto metrics = task->make_metrics(false);
    metrics->add(outputs, batch);
    const Metric score = task->score();
    const double value =
        (score.unit == MetricUnit::percent ? 100 : 1) * task->score_sum(outputs, batch).item<double>() / 11;
    for (const Metric& metric : metrics->read()) {
      if (metric.name != score.name) continue;
      EXPECT_NEAR(metric.value, value, 1e-5) << config::task_name(kind);
    }
  }
}

}  // namespace
}  // namespace stoker::engine
