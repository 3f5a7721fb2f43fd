// SPDX-License-Identifier: Apache-2.0
#include "engine/step/mixup.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "engine/step/update_step.h"
#include "engine/task/task.h"

namespace stoker::engine {
namespace {

MixSettings settings_of(double mixup_alpha, double cutmix_alpha) {
  MixSettings settings;
  settings.mixup_alpha = mixup_alpha;
  settings.cutmix_alpha = cutmix_alpha;
  settings.seed = 42;
  return settings;
}

/// Mean and variance of lambda over many mixup batches.
std::pair<double, double> moments(double alpha) {
  constexpr int kBatches = 20000;
  double sum = 0, squares = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double share = draw_mix(settings_of(alpha, 0), 0, batch, 8, 8).lambda;
    EXPECT_TRUE(share >= 0 && share <= 1) << share;
    sum += share;
    squares += share * share;
  }
  const double mean = sum / kBatches;
  return {mean, squares / kBatches - mean * mean};
}

TEST(MixupTest, TheShareFollowsTheBetaDistribution) {
  for (const double alpha : {0.001, 0.2, 1.0, 8.0}) {
    const auto [mean, variance] = moments(alpha);
    EXPECT_NEAR(mean, 0.5, 0.015) << alpha;
    EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.004) << alpha;
  }
}

TEST(MixupTest, TheDrawIsAFunctionOfSeedEpochAndBatch) {
  const MixSettings settings = settings_of(1, 0);
  const double share = draw_mix(settings, 3, 5, 8, 8).lambda;
  EXPECT_EQ(draw_mix(settings, 3, 5, 8, 8).lambda, share);
  EXPECT_NE(draw_mix(settings, 3, 6, 8, 8).lambda, share);
  EXPECT_NE(draw_mix(settings, 4, 5, 8, 8).lambda, share);
  MixSettings other_seed = settings;
  other_seed.seed = 43;
  EXPECT_NE(draw_mix(other_seed, 3, 5, 8, 8).lambda, share);
}

TEST(MixupTest, TheDrawsArePartOfTheFormatOfARun) {
  // When these change, runs of an older version can no longer be resumed exactly.
  EXPECT_EQ(std::lround(draw_mix(settings_of(0.2, 0), 0, 0, 224, 224).lambda * (1 << 20)), 633976);
  const Mix patch = draw_mix(settings_of(0, 1), 0, 0, 224, 224);
  EXPECT_EQ(patch.left, 54);
  EXPECT_EQ(patch.top, 36);
  EXPECT_EQ(patch.width, 170);
  EXPECT_EQ(patch.height, 188);
}

TEST(MixupTest, TheTextSaysWhatIsMixed) {
  EXPECT_EQ(mix_text(settings_of(0, 0)), "");
  EXPECT_EQ(mix_text(settings_of(0.2, 0)), "mixup 0.2");
  MixSettings both = settings_of(0.2, 1);
  both.probability = 0.9;
  EXPECT_EQ(mix_text(both), "mixup 0.2 or CutMix 1 (of 90 % of batches)");
}

TEST(MixupTest, ProbabilitiesAreSharesOfBatches) {
  MixSettings settings = settings_of(1, 1);
  settings.probability = 0.25;
  settings.switch_probability = 0.75;
  int mixed = 0, patches = 0;
  for (int batch = 0; batch < 4000; ++batch) {
    const Mix mix = draw_mix(settings, 0, batch, 64, 64);
    mixed += mix.lambda < 1 ? 1 : 0;
    patches += mix.is_patch ? 1 : 0;
  }
  EXPECT_NEAR(mixed, 1000, 80);
  EXPECT_NEAR(patches, 750, 80);
  for (int batch = 0; batch < 100; ++batch) {
    EXPECT_FALSE(draw_mix(settings_of(1, 0), 0, batch, 64, 64).is_patch);
    EXPECT_TRUE(draw_mix(settings_of(0, 1), 0, batch, 64, 64).is_patch);
    EXPECT_EQ(draw_mix(settings_of(0, 0), 0, batch, 64, 64).lambda, 1);
  }
}

TEST(MixupTest, MixedImagesAreThoseOfTorchvision) {
  torch::manual_seed(1);
  const torch::Tensor images = torch::randn({5, 3, 6, 4}).contiguous(torch::MemoryFormat::ChannelsLast);
  Mix mix;
  mix.lambda = 0.3;
  const torch::Tensor averaged = mixed_images(images, mix);
  EXPECT_TRUE(torch::allclose(averaged, images.roll(1, 0) * (1 - 0.3) + images * 0.3, 1e-6, 1e-7));
  EXPECT_TRUE(averaged.is_contiguous(torch::MemoryFormat::ChannelsLast));

  mix = {0.75, /*is_patch=*/true, /*left=*/1, /*top=*/2, /*width=*/2, /*height=*/3};
  torch::Tensor wanted = images.clone();
  wanted.slice(2, 2, 5).slice(3, 1, 3).copy_(images.roll(1, 0).slice(2, 2, 5).slice(3, 1, 3));
  const torch::Tensor pasted = mixed_images(images, mix);
  EXPECT_TRUE(torch::equal(pasted, wanted));
  EXPECT_TRUE(pasted.is_contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(torch::equal(pasted, images));
}

TEST(MixupTest, AnImageAloneIsItsOwnPartner) {
  const torch::Tensor image = torch::randn({1, 1, 4, 4});
  EXPECT_TRUE(torch::allclose(mixed_images(image, {0.25, false, 0, 0, 0, 0}), image));
  EXPECT_TRUE(torch::equal(mixed_images(image, {0.75, true, 1, 1, 2, 2}), image));
}

TEST(MixupTest, ThePatchCoversWhatTheShareSays) {
  int outside = 0;
  for (int batch = 0; batch < 500; ++batch) {
    const Mix mix = draw_mix(settings_of(0, 1), 0, batch, 40, 30);
    EXPECT_TRUE(mix.left >= 0 && mix.top >= 0 && mix.width >= 0 && mix.height >= 0);
    EXPECT_TRUE(mix.left + mix.width <= 40 && mix.top + mix.height <= 30);
    EXPECT_DOUBLE_EQ(mix.lambda, 1 - static_cast<double>(mix.width * mix.height) / (40 * 30));
    outside += mix.left == 0 || mix.top == 0 ? 1 : 0;
  }
  EXPECT_GT(outside, 100) << "boxes are cut at the border";
}

/// A linear classifier of 4 classes with its optimizer.
struct LinearTrainee : Learner {
  LinearTrainee() {
    struct Model : model::ImageModel {
      Model() { fc = register_module("fc", torch::nn::Linear(12, 4)); }
      torch::Tensor forward(torch::Tensor images) override { return fc(images.flatten(1)); }
      std::string head_prefix() const override { return "fc."; }
      torch::nn::Linear fc{nullptr};
    };
    torch::manual_seed(3);
    model = std::make_shared<Model>();
    std::vector<optim::NamedParameter> parameters;
    for (const auto& item : model->named_parameters()) parameters.push_back({item.key(), item.value()});
    optimizer = std::make_unique<optim::Optimizer>(parameters, config::ResolvedOptimOptions{});
    scaler = std::make_unique<optim::GradScaler>(optim::GradScalerSettings{}, torch::kCPU);
  }
};

data::Batch four_images() {
  data::Batch batch;
  torch::manual_seed(4);
  batch.images = torch::randn({4, 3, 2, 2});
  batch.labels = torch::tensor({0, 3, 2, 2}, torch::kInt64);
  return batch;
}

std::unique_ptr<Task> four_classes(double label_smoothing) {
  TaskSpec spec;
  spec.label_smoothing = label_smoothing;
  spec.num_classes = 4;
  return make_task(spec, torch::kCPU);
}

TEST(MixupTest, LossAndGradientAreThoseOfMixedOneHotLabels) {
  const data::Batch batch = four_images();
  for (const double share : {0.3, 0.8, 1.0}) {
    LinearTrainee learner;
    const std::unique_ptr<Task> task = four_classes(/*label_smoothing=*/0.1);
    UpdateStep step({}, *task, learner);
    Mix mix;
    mix.lambda = share;
    const Forward forward = step.accumulate(batch, 4, mix);
    const torch::Tensor gradient = learner.model->named_parameters()["fc.weight"].grad().clone();

    // torchvision's MixUp: images and one-hot labels of the batch and of the batch rolled by one.
    LinearTrainee other;
    const torch::Tensor one_hot = torch::eye(4).index_select(0, batch.labels);
    const torch::Tensor targets = one_hot.roll(1, 0) * (1 - share) + one_hot * share;
    const torch::Tensor images = batch.images.roll(1, 0) * (1 - share) + batch.images * share;
    const torch::Tensor wanted = at::cross_entropy_loss(other.model->forward(images), targets, /*weight=*/{},
                                                        at::Reduction::Sum, -100, /*label_smoothing=*/0.1);
    (wanted / 4).backward();
    EXPECT_NEAR(forward.loss_sum.item<double>(), wanted.item<double>(), 1e-5) << share;
    EXPECT_TRUE(torch::allclose(gradient, other.model->named_parameters()["fc.weight"].grad(), 1e-4, 1e-6));
  }
}

TEST(MixupTest, HitsAreCountedAgainstTheLabelWithTheLargerShare) {
  const data::Batch batch = four_images();
  LinearTrainee learner;
  const std::unique_ptr<Task> task = four_classes(/*label_smoothing=*/0);
  UpdateStep step({}, *task, learner);
  EXPECT_TRUE(torch::equal(step.accumulate(batch, 4, {0.6, false, 0, 0, 0, 0}).scored_against.labels, batch.labels));
  EXPECT_TRUE(
      torch::equal(step.accumulate(batch, 4, {0.4, false, 0, 0, 0, 0}).scored_against.labels, batch.labels.roll(1, 0)));
}

}  // namespace
}  // namespace stoker::engine
