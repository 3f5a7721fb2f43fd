// SPDX-License-Identifier: Apache-2.0
// Distillation against plain operations.
#include "engine/step/teacher.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <memory>

#include "engine/step/update_step.h"
#include "model/loss.h"
#include "optim/optimizer.h"

namespace stoker::engine {
namespace {

constexpr int64_t kPupilClasses = 4;
constexpr double kPupilLr = 0.1, kShare = 0.7, kTemperature = 3;

struct PupilModel : model::ImageModel {
  explicit PupilModel(int64_t classes) {
    norm = register_module("norm", torch::nn::BatchNorm1d(12));
    fc = register_module("fc", torch::nn::Linear(12, classes));
  }
  torch::Tensor forward(torch::Tensor images) override { return fc(norm(images.flatten(1))); }
  std::string head_prefix() const override { return "fc."; }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear fc{nullptr};
};

std::shared_ptr<PupilModel> pupil_of(int64_t seed, int64_t classes = kPupilClasses) {
  torch::manual_seed(seed);
  const auto model = std::make_shared<PupilModel>(classes);
  const torch::NoGradGuard no_gradients;
  for (torch::Tensor& parameter : model->parameters()) parameter.add_(torch::randn_like(parameter), 0.5);
  model->norm->running_mean.uniform_(-1, 1);
  return model;
}

Learner learner_of_pupil(const std::shared_ptr<PupilModel>& model) {
  Learner learner;
  learner.model = model;
  std::vector<optim::NamedParameter> parameters;
  for (const auto& item : model->named_parameters()) parameters.push_back({item.key(), item.value()});
  config::ResolvedOptimOptions options;
  options.opt = config::OptimizerKind::sgd;
  options.momentum = 0;
  options.nesterov = false;
  options.weight_decay = 0;
  learner.optimizer = std::make_unique<optim::Optimizer>(parameters, options);
  learner.scaler = std::make_unique<optim::GradScaler>(optim::GradScalerSettings{}, torch::kCPU);
  return learner;
}

data::Batch batch_of(int64_t update, int64_t images = 6) {
  data::Batch batch;
  torch::manual_seed(1000 + update);
  batch.images = torch::randn({images, 3, 2, 2});
  batch.labels = torch::arange(images).add(update).remainder(kPupilClasses);
  return batch;
}

std::unique_ptr<Task> task_of_classes() {
  TaskSpec spec;
  spec.num_classes = kPupilClasses;
  return make_task(spec, torch::kCPU);
}

TeacherSettings taught_by(double share = kShare, double temperature = kTemperature) {
  TeacherSettings settings;
  settings.share = share;
  settings.temperature = temperature;
  return settings;
}

/// Mixed images, two batches per update, and a batch norm that trains in one network and holds still in the other.
TEST(TeacherTest, LearnsAsPlainOperationsDoOver20Updates) {
  const std::shared_ptr<PupilModel> model = pupil_of(1), reference = pupil_of(1);
  const std::shared_ptr<PupilModel> teacher = pupil_of(2), their_teacher = pupil_of(2);
  Learner learner = learner_of_pupil(model);
  learner.teacher = std::make_shared<Teacher>(teacher, taught_by());
  const std::unique_ptr<Task> task = task_of_classes();
  UpdateStep step({}, *task, learner);
  model->train();
  reference->train();
  their_teacher->eval();
  for (int64_t update = 0; update < 20; ++update) {
    const double own = update % 2 == 0 ? 0.6 : 1;
    for (int64_t part = 0; part < 2; ++part) {
      const data::Batch batch = batch_of(2 * update + part);
      Mix mix;
      mix.lambda = own;
      const Forward forward = step.accumulate(batch, 12, mix);

      const torch::Tensor images = batch.images * own + batch.images.roll(1, 0) * (1 - own);
      const torch::Tensor one_hot = torch::eye(kPupilClasses).index_select(0, batch.labels);
      const torch::Tensor wanted = one_hot * own + one_hot.roll(1, 0) * (1 - own);
      const torch::Tensor taught = (their_teacher->forward(images).detach() / kTemperature).softmax(1);
      const torch::Tensor logits = reference->forward(images);
      const torch::Tensor labels_loss = -(wanted * logits.log_softmax(1)).sum();
      const torch::Tensor divergence = (taught * (taught.log() - (logits / kTemperature).log_softmax(1))).sum();
      const torch::Tensor loss = (1 - kShare) * labels_loss + kShare * kTemperature * kTemperature * divergence;
      EXPECT_NEAR(forward.loss_sum.item<double>(), loss.item<double>(), 1e-4) << update;
      (loss / 12).backward();
    }
    step.apply({kPupilLr});
    const torch::NoGradGuard no_gradients;
    for (torch::Tensor& parameter : reference->parameters()) {
      parameter.sub_(parameter.grad(), kPupilLr);
      parameter.mutable_grad().reset();
    }
  }
  for (const auto& item : reference->named_parameters()) {
    const torch::Tensor learned = model->named_parameters()[item.key()];
    const torch::Tensor before = pupil_of(1)->named_parameters()[item.key()];
    EXPECT_LT((learned - item.value()).abs().max().item<double>(), 1e-6) << item.key();
    EXPECT_GT((learned - before).abs().max().item<double>(), 1e-2) << item.key();
  }
  for (const model::NamedTensor& entry : model::state_of(*pupil_of(2))) {
    for (const model::NamedTensor& one : model::state_of(*teacher)) {
      const bool is_other = one.name == entry.name && !one.tensor.equal(entry.tensor);
      EXPECT_FALSE(is_other) << one.name << " of the teacher";
    }
  }
}

TEST(TeacherTest, ItsClassesAreThoseOfTheSameNamesAndItsImagesAreNormalisedAsItLearnedThem) {
  const std::shared_ptr<PupilModel> network = pupil_of(3, /*classes=*/6);
  TeacherSettings settings = taught_by();
  settings.rows = {5, 0, 3, 1};
  settings.scale = torch::tensor({2.0F, 0.5F, 1.0F}).view({3, 1, 1});
  settings.offset = torch::tensor({0.1F, 0.0F, -1.0F}).view({3, 1, 1});
  const Teacher teacher(network, settings);
  const torch::Tensor images = batch_of(0).images;
  torch::Tensor seen = images.clone();
  seen.select(1, 0).mul_(2).add_(0.1);
  seen.select(1, 1).mul_(0.5);
  seen.select(1, 2).sub_(1);
  const torch::Tensor outputs = network->forward(seen);
  const torch::Tensor given = teacher.outputs(images);
  EXPECT_FALSE(teacher.keeps());
  ASSERT_EQ(given.size(1), 4);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(given.select(1, i).allclose(outputs.select(1, settings.rows[static_cast<size_t>(i)]), 1e-5, 1e-6));
  }
  EXPECT_FALSE(given.requires_grad());
  EXPECT_FALSE(network->is_training());
}

TEST(TeacherTest, KeptOutputsStandForItsOwnInEachMicroBatch) {
  const torch::Tensor table = torch::randn({20, kPupilClasses});
  const auto gradient_with = [&](bool keeps, int64_t micro_batches) {
    const std::shared_ptr<PupilModel> model = pupil_of(1);
    model->eval();  // batch norm would see micro-batches
    Learner learner = learner_of_pupil(model);
    struct Table : model::ImageModel {  // images hold the number of their row
      explicit Table(torch::Tensor rows) : rows_(std::move(rows)) {
        unused_ = register_parameter("unused", torch::zeros({1}));
      }
      torch::Tensor forward(torch::Tensor images) override {
        return rows_.index_select(0, images.flatten(1).select(1, 0).to(torch::kLong));
      }
      std::string head_prefix() const override { return "unused"; }
      torch::Tensor rows_, unused_;
    };
    const auto teacher = std::make_shared<Teacher>(
        keeps ? std::shared_ptr<model::ImageModel>(pupil_of(9)) : std::make_shared<Table>(table), taught_by());
    if (keeps) teacher->keep(table);
    learner.teacher = teacher;
    data::Batch batch = batch_of(1);
    batch.samples = {4, 19, 0, 7, 7, 12};
    for (int64_t i = 0; i < 6; ++i) batch.images[i].flatten()[0] = batch.samples[static_cast<size_t>(i)];
    const std::unique_ptr<Task> task = task_of_classes();
    UpdateStep step({}, *task, learner);
    step.set_micro_batches(micro_batches);
    step.accumulate(batch, 6);
    return model->fc->weight.grad().clone();
  };
  const torch::Tensor wanted = gradient_with(/*keeps=*/false, 1);
  EXPECT_TRUE(gradient_with(/*keeps=*/true, 1).equal(wanted));
  EXPECT_TRUE(gradient_with(/*keeps=*/true, 3).allclose(wanted, 1e-5, 1e-6));
}

TEST(TeacherTest, AShareOf0IsTheOwnLossAndANetworkIsNoFurtherFromItself) {
  const torch::Tensor logits = torch::randn({5, 3}, torch::requires_grad());
  const torch::Tensor own = logits.square().sum();
  const Teacher none(pupil_of(4), taught_by(/*share=*/0));
  EXPECT_EQ(none.loss_sum(own, logits, torch::randn({5, 3})).item<float>(), own.item<float>());
  EXPECT_NEAR(model::distillation_sum(logits, logits.detach(), 4).item<double>(), 0, 1e-5);
  const torch::Tensor apart = model::distillation_sum(logits, logits.detach() + torch::eye(5, 3), 4);
  EXPECT_GT(apart.item<double>(), 0.01);
}

}  // namespace
}  // namespace stoker::engine
