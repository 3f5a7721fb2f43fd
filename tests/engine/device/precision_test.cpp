// SPDX-License-Identifier: Apache-2.0
#include "engine/device/precision.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "engine/device/torch_compat.h"

namespace stoker::engine {
namespace {

TEST(AutocastScopeTest, ComputesInBfloat16AndRestores) {
  const torch::Tensor a = torch::rand({4, 4}), b = torch::rand({4, 4});
  {
    const AutocastScope scope({torch::kCPU, /*autocast=*/true, at::kBFloat16});
    EXPECT_EQ(at::mm(a, b).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(at::mm(a, b).scalar_type(), at::kFloat);
  EXPECT_FALSE(compat::autocast_enabled(at::kCPU));
}

TEST(AutocastScopeTest, DoesNothingWhenSwitchedOff) {
  const AutocastScope scope({torch::kCPU, /*autocast=*/false, at::kBFloat16});
  EXPECT_EQ(at::mm(torch::rand({4, 4}), torch::rand({4, 4})).scalar_type(), at::kFloat);
}

TEST(AutocastScopeTest, NeverServesWeightsFromBeforeAnUpdate) {
  torch::Tensor weight = torch::ones({4, 4}).requires_grad_();  // leaves are what autocast caches
  const torch::Tensor input = torch::ones({4, 4});
  const auto product = [&] {
    const AutocastScope scope({torch::kCPU, true, at::kBFloat16});
    return at::mm(input, weight).sum().item<float>();
  };
  EXPECT_EQ(product(), 64);
  {
    const torch::NoGradGuard no_gradients;
    weight.mul_(2);
  }
  EXPECT_EQ(product(), 128);
}

}  // namespace
}  // namespace stoker::engine
