// SPDX-License-Identifier: Apache-2.0
// The losses of the tasks. Golden numbers are torch's (torch.nn.functional in Python,
// float32).
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "config/task_facts.h"
#include "engine/task/task.h"

namespace stoker::engine {
namespace {

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
  const std::pair<config::RegressionLoss, double> golden[] = {{config::RegressionLoss::l1, 2.125},
                                                              {config::RegressionLoss::l2, 2.65625},
                                                              {config::RegressionLoss::smooth_l1, 1.203125}};
  for (const auto& [loss, wanted] : golden) {
    spec.options.loss = loss;
    EXPECT_NEAR(training_loss(spec, outputs, batch), wanted, 1e-6) << static_cast<int>(loss);
  }
  const torch::Tensor predictions = make_task(spec, torch::kCPU)->predictions(outputs);
  EXPECT_TRUE(torch::equal(predictions, torch::tensor({11.0f, 1.0f, 15.0f, 6.0f}).view({2, 2})));
}

TEST(HeadPoseLossTest, DirectAnglesDifferByTheShorterWayRound) {
  const torch::Tensor outputs = torch::tensor({0.5f, -0.25f, 1.0f, -3.9f, 0.1f, 0.2f}).view({2, 3});
  const data::Batch batch = batch_of_targets(torch::tensor({20.0f, -10.0f, 50.0f, 178.0f, 5.0f, 0.0f}).view({2, 3}));
  TaskSpec spec = spec_of(TaskKind::head_pose, 3);
  spec.options.target_scale = {45};
  spec.options.loss = config::RegressionLoss::l2;
  EXPECT_NEAR(training_loss(spec, outputs, batch), 0.02573046, 1e-6);
  spec.options.loss = config::RegressionLoss::smooth_l1;
  EXPECT_NEAR(training_loss(spec, outputs, batch), 0.01286523, 1e-6);
}

TEST(HeadPoseLossTest, TheGradientIsThatOfThePlainDifference) {
  torch::Tensor outputs = torch::tensor({-3.9f, 0.0f, 0.0f}).view({1, 3}).requires_grad_();
  TaskSpec spec = spec_of(TaskKind::head_pose, 3);
  spec.options.target_scale = {45};
  spec.options.loss = config::RegressionLoss::l2;
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
  spec.options.loss = config::RegressionLoss::l2;
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
