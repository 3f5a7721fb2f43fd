// SPDX-License-Identifier: Apache-2.0
#include "optim/grad_scaler.h"

#include <gtest/gtest.h>
#include <torch/version.h>

#include <cmath>
#include <limits>

#include "core/rng.h"

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
#include <ATen/ops/_amp_update_scale.h>
#endif

namespace stoker::optim {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

GradScalerSettings scaler_settings(double init_scale = 1024) {
  GradScalerSettings settings;
  settings.enabled = true;
  settings.init_scale = init_scale;
  settings.growth_interval = 3;
  return settings;
}

struct ScalerUpdate {
  float gradient;  ///< one value among finite ones, before unscaling
  float found_inf;
  float scale;  ///< after update()
  int growth;   ///< after update()
  int64_t skipped;
};

// By hand from the algorithm: a bad update halves the scale and starts counting again; three good ones double
// it.
constexpr ScalerUpdate kScript[] = {
    {1, 0, 1024, 1, 0},    {1, 0, 1024, 2, 0},    {1, 0, 2048, 0, 0},    {1, 0, 2048, 1, 0},
    {kInf, 1, 1024, 0, 1}, {-kInf, 1, 512, 0, 2}, {1, 0, 512, 1, 2},     {1, 0, 512, 2, 2},
    {kNaN, 1, 256, 0, 3},  {1, 0, 256, 1, 3},     {1e38F, 0, 256, 2, 3}, {-1e38F, 0, 512, 0, 3},
};

TEST(GradScalerTest, FollowsTheDocumentedSequence) {
  GradScaler scaler(scaler_settings(), torch::kCPU);
  int update = 0;
  for (const ScalerUpdate& expected : kScript) {
    const float scale_before = scaler.scale().item<float>();
    const std::vector<torch::Tensor> gradients = {torch::ones({2, 3}), torch::tensor({1.0F, expected.gradient})};
    const torch::Tensor found_inf = scaler.unscale(gradients);
    EXPECT_EQ(found_inf.scalar_type(), torch::kFloat32);
    EXPECT_EQ(found_inf.item<float>(), expected.found_inf) << update;
    EXPECT_EQ(gradients[0][0][0].item<float>(), 1 / scale_before) << update;
    scaler.update();
    EXPECT_EQ(scaler.scale().item<float>(), expected.scale) << update;
    EXPECT_EQ(scaler.growth_tracker().item<int>(), expected.growth) << update;
    EXPECT_EQ(scaler.skipped().item<int64_t>(), expected.skipped) << update;
    ++update;
  }
}

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
TEST(GradScalerTest, FollowsTorchsOwnKernel) {
  GradScaler scaler(scaler_settings(), torch::kCPU);
  torch::Tensor scale = torch::full({1}, 1024.0F);
  torch::Tensor tracker = torch::zeros({1}, torch::kInt32);
  for (const ScalerUpdate& script : kScript) {
    const torch::Tensor found_inf = scaler.unscale({torch::full({4}, script.gradient)});
    at::_amp_update_scale_(scale, tracker, found_inf, 2.0, 0.5, 3);
    scaler.update();
    EXPECT_EQ(scaler.scale().item<float>(), scale.item<float>());
    EXPECT_EQ(scaler.growth_tracker().item<int>(), tracker.item<int>());
  }
}
#endif

/// The steps of torch.amp.GradScaler, as PyTorch's documentation and the kernel behind it have it.
struct PythonsRule {
  double growth_factor, backoff_factor;
  int64_t growth_interval;
  float scale;
  int64_t tracker = 0;
  void step(bool found_inf) {
    if (found_inf) {
      scale = static_cast<float>(scale * backoff_factor);
      tracker = 0;
    } else if (++tracker == growth_interval) {
      const auto grown = static_cast<float>(scale * growth_factor);
      if (std::isfinite(grown)) scale = grown;
      tracker = 0;
    }
  }
};

TEST(GradScalerTest, TheSequenceOfScalesIsPythons) {
  core::Rng rng(11, core::RngPurpose::init, 0, 0);
  for (const int64_t interval : {1, 2, 7, 50}) {
    for (const double overflows : {0.0, 0.02, 0.3, 0.9}) {
      GradScalerSettings settings = scaler_settings(65536);
      settings.growth_interval = interval;
      GradScaler scaler(settings, torch::kCPU);
      PythonsRule python{settings.growth_factor, settings.backoff_factor, interval, 65536};
      int64_t in_row = 0, skipped = 0;
      for (int step = 0; step < 300; ++step) {
        const bool overflow = rng.chance(overflows);
        scaler.unscale({torch::full({4}, overflow ? kInf : 1.0F)});
        scaler.update();
        python.step(overflow);
        in_row = overflow ? in_row + 1 : 0;
        skipped += overflow ? 1 : 0;
        ASSERT_EQ(scaler.growth_tracker().item<int64_t>(), python.tracker) << step;
        const torch::Tensor figures = scaler.figures();
        const LossScale seen = GradScaler::read(figures.data_ptr<double>());
        ASSERT_EQ(seen.scale, static_cast<double>(python.scale)) << step;
        ASSERT_EQ(seen.skipped, skipped) << step;
        ASSERT_EQ(seen.skipped_in_row, in_row) << step;
      }
    }
  }
}

TEST(GradScalerTest, FactorsThatAreNoPowersOfTwoMultiplyInDouble) {
  GradScalerSettings settings = scaler_settings(65536);
  settings.growth_interval = 1;
  settings.growth_factor = 1.7;
  settings.backoff_factor = 0.3;
  GradScaler scaler(settings, torch::kCPU);
  PythonsRule python{settings.growth_factor, settings.backoff_factor, 1, 65536};
  core::Rng rng(12, core::RngPurpose::init, 0, 0);
  for (int step = 0; step < 200; ++step) {
    const bool overflow = rng.chance(0.3);
    scaler.unscale({torch::full({4}, overflow ? kInf : 1.0F)});
    scaler.update();
    python.step(overflow);
    ASSERT_EQ(scaler.scale().item<float>(), python.scale) << step;
  }
}

TEST(GradScalerTest, NeverGrowsToInfinity) {
  GradScaler scaler(scaler_settings(3e38), torch::kCPU);
  for (int update = 0; update < 3; ++update) {
    scaler.unscale({torch::ones({2})});
    scaler.update();
  }
  EXPECT_EQ(scaler.scale().item<float>(), 3e38F);
  EXPECT_EQ(scaler.growth_tracker().item<int>(), 0);
}

TEST(GradScalerTest, LargeFiniteGradientsAreNotMistakenForInfinite) {
  GradScaler scaler(scaler_settings(), torch::kCPU);
  EXPECT_EQ(scaler.unscale({torch::full({1000}, 3e38F)}).item<float>(), 0);
}

TEST(GradScalerTest, ScaledLossKeepsItsShapeAndUnscaleUndoesIt) {
  GradScaler scaler(scaler_settings(), torch::kCPU);
  const torch::Tensor weight = torch::tensor({2.0F, 3.0F}).requires_grad_();
  const torch::Tensor loss = scaler.scaled((weight * weight).sum());
  EXPECT_EQ(loss.dim(), 0);
  EXPECT_EQ(loss.item<float>(), 13 * 1024);
  loss.backward();
  scaler.unscale({weight.grad()});
  EXPECT_TRUE(torch::equal(weight.grad(), torch::tensor({4.0F, 6.0F})));
}

TEST(GradScalerTest, StateRestoresByCopy) {
  GradScaler first(scaler_settings(), torch::kCPU);
  for (const float value : {1.0F, kInf, 1.0F, 1.0F}) {
    first.unscale({torch::full({1}, value)});
    first.update();
  }
  GradScaler second(scaler_settings(), torch::kCPU);
  second.scale().copy_(first.scale());
  second.growth_tracker().copy_(first.growth_tracker());
  second.skipped().copy_(first.skipped());
  for (GradScaler* scaler : {&first, &second}) {
    scaler->unscale({torch::ones({1})});
    scaler->update();
    EXPECT_EQ(scaler->scale().item<float>(), 1024);
    EXPECT_EQ(scaler->growth_tracker().item<int>(), 0);
    EXPECT_EQ(scaler->skipped().item<int64_t>(), 1);
  }
}

TEST(GradScalerTest, DisabledPassesEverythingThrough) {
  GradScaler scaler(GradScalerSettings{}, torch::kCPU);
  const torch::Tensor gradient = torch::full({2}, kInf);
  const torch::Tensor loss = torch::ones({});
  EXPECT_TRUE(scaler.scaled(loss).is_same(loss));
  EXPECT_FALSE(scaler.unscale({gradient}).defined());
  scaler.update();
  EXPECT_EQ(gradient[0].item<float>(), kInf);
}

}  // namespace
}  // namespace stoker::optim
