// SPDX-License-Identifier: Apache-2.0
#include "optim/grad_scaler.h"

#include <gtest/gtest.h>

#include <limits>

namespace stoker::optim {
namespace {

/// Norms 3 and 4: together 5.
std::vector<torch::Tensor> three_four() {
  return {torch::tensor({0.0F, -3.0F}), torch::full({2, 2}, 2.0F).contiguous()};
}

TEST(GradientsTest, NormAboveTheLimitIsScaledDownTogether) {
  const auto gradients = three_four();
  const torch::Tensor norm = clip_gradients(gradients, 1, config::ClipMode::norm);
  EXPECT_EQ(norm.dim(), 0);
  EXPECT_FLOAT_EQ(norm.item<float>(), 5);
  // torch.nn.utils.clip_grad_norm_ divides by the norm plus 1e-6.
  const double factor = 1 / (5 + 1e-6);
  EXPECT_NEAR(gradients[0][1].item<double>(), -3 * factor, 1e-7);
  EXPECT_NEAR(gradients[1][1][0].item<double>(), 2 * factor, 1e-7);
}

TEST(GradientsTest, NormBelowTheLimitIsLeftAlone) {
  const auto gradients = three_four();
  EXPECT_FLOAT_EQ(clip_gradients(gradients, 6, config::ClipMode::norm).item<float>(), 5);
  EXPECT_EQ(gradients[0][1].item<float>(), -3);
  EXPECT_EQ(gradients[1][0][0].item<float>(), 2);
}

TEST(GradientsTest, ValueModeClampsEachValue) {
  const auto gradients = three_four();
  EXPECT_FALSE(clip_gradients(gradients, 2.5, config::ClipMode::value).defined());
  EXPECT_EQ(gradients[0][1].item<float>(), -2.5F);
  EXPECT_EQ(gradients[1][0][0].item<float>(), 2);
}

TEST(GradientsTest, NormOfNonFiniteGradientsIsNotFinite) {
  const std::vector<torch::Tensor> gradients = {torch::ones({2}),
                                                torch::full({1}, std::numeric_limits<float>::quiet_NaN())};
  const torch::Tensor norm = clip_gradients(gradients, 1, config::ClipMode::norm);
  EXPECT_FALSE(torch::isfinite(norm).item<bool>());
}

TEST(GradientsTest, NoGradientsAreNothingToClip) {
  EXPECT_FALSE(clip_gradients({}, 1, config::ClipMode::norm).defined());
}

}  // namespace
}  // namespace stoker::optim
