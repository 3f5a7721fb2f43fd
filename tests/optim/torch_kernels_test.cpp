// SPDX-License-Identifier: Apache-2.0
// The kernels for devices, run on the CPU as far as this LibTorch can, against our own loops.
#include "optim/torch_kernels.h"

#include <gtest/gtest.h>
#include <torch/utils.h>
#include <torch/version.h>

#include "kernels/cpu.h"
#include "optim/optimizer.h"

namespace stoker::optim {
namespace {

constexpr char kWithoutKernels[] = "this build has no loops to compare with";

KernelLists test_lists(bool adam) {
  torch::manual_seed(17);
  KernelLists lists;
  for (const int64_t count : {5, 300, 4096}) {
    lists.parameters.push_back(torch::randn({count}));
    lists.first.push_back(torch::randn({count}));
    if (adam) lists.second.push_back(torch::rand({count}));
    lists.gradients.push_back(torch::randn({count}));
  }
  return lists;
}

void expect_same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::allclose(a[i], b[i], 1e-6, 1e-6)) << i;
}

TEST(TorchKernelsTest, ForeachAdamEqualsOnePass) {
  if (!kernels::has_optimizer_step()) GTEST_SKIP() << kWithoutKernels;
  for (const bool decoupled : {false, true}) {
    const AdamRule rule{0.1, 0.8, 0.95, 1e-6, 0.05, decoupled};
    const KernelLists ours = test_lists(true);
    const KernelLists theirs = test_lists(true);
    for (size_t i = 0; i < ours.parameters.size(); ++i) {
      one_pass_adam(ours.parameters[i], ours.gradients[i], ours.first[i], ours.second[i], rule, 3);
    }
    foreach_adam(theirs, rule, 3);
    expect_same(ours.parameters, theirs.parameters);
    expect_same(ours.first, theirs.first);
    expect_same(ours.second, theirs.second);
  }
}

TEST(TorchKernelsTest, ForeachSgdEqualsOnePass) {
  if (!kernels::has_optimizer_step()) GTEST_SKIP() << kWithoutKernels;
  for (const double momentum : {0.0, 0.9}) {
    for (const bool nesterov : {false, true}) {
      const SgdRule rule{0.1, momentum, nesterov, 0.05};
      const KernelLists ours = test_lists(false);
      const KernelLists theirs = test_lists(false);
      for (size_t i = 0; i < ours.parameters.size(); ++i) {
        one_pass_sgd(ours.parameters[i], ours.gradients[i], ours.first[i], rule);
      }
      foreach_sgd(theirs, rule);
      expect_same(ours.parameters, theirs.parameters);
      expect_same(ours.first, theirs.first);
    }
  }
}

TEST(TorchKernelsTest, ApproachMovesAveragesByTheShare) {
  const std::vector<torch::Tensor> averages = {torch::zeros({3}), torch::ones({2, 2})};
  const std::vector<torch::Tensor> values = {torch::full({3}, 8.0F), torch::full({2, 2}, 5.0F)};
  approach_all(averages, values, 0.25);
  EXPECT_TRUE(torch::equal(averages[0], torch::full({3}, 2.0F)));
  EXPECT_TRUE(torch::equal(averages[1], torch::full({2, 2}, 2.0F)));
  approach_all(averages, values, torch::full({1}, 0.5F));
  EXPECT_TRUE(torch::equal(averages[0], torch::full({3}, 5.0F)));
}

TEST(TorchKernelsTest, MultiplyTakesAOneElementTensor) {
  const std::vector<torch::Tensor> tensors = {torch::ones({3}), torch::ones({2, 2})};
  multiply_all(tensors, torch::full({1}, 0.5F));
  EXPECT_TRUE(torch::equal(tensors[1], torch::full({2, 2}, 0.5F)));
  EXPECT_EQ(tensors[0].dim(), 1);
}

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 6)
TEST(TorchKernelsTest, FusedSgdEqualsOnePassAndHeedsFoundInf) {
  if (!kernels::has_optimizer_step()) GTEST_SKIP() << kWithoutKernels;
  const SgdRule rule{0.1, 0.9, true, 0.05};
  const KernelLists ours = test_lists(false);
  const KernelLists theirs = test_lists(false);
  fused_sgd(theirs, rule, torch::ones({1}));
  for (size_t i = 0; i < ours.parameters.size(); ++i) {
    one_pass_sgd(ours.parameters[i], ours.gradients[i], ours.first[i], rule);
  }
  fused_sgd(theirs, rule, {});
  expect_same(ours.parameters, theirs.parameters);
  expect_same(ours.first, theirs.first);
}

TEST(TorchKernelsTest, FusedAdamEqualsOnePassAndHeedsFoundInf) {
  if (!kernels::has_optimizer_step()) GTEST_SKIP() << kWithoutKernels;
  for (const bool decoupled : {false, true}) {
    const AdamRule rule{0.1, 0.9, 0.99, 1e-8, 0.05, decoupled};
    const KernelLists ours = test_lists(true);
    const KernelLists theirs = test_lists(true);
    const torch::Tensor step = torch::full({1}, 3.0F);
    fused_adam(theirs, rule, step, torch::ones({1}));
    for (size_t i = 0; i < ours.parameters.size(); ++i) {
      one_pass_adam(ours.parameters[i], ours.gradients[i], ours.first[i], ours.second[i], rule, 3);
    }
    fused_adam(theirs, rule, step, {});
    expect_same(ours.parameters, theirs.parameters);
    expect_same(ours.second, theirs.second);
  }
}
#endif

}  // namespace
}  // namespace stoker::optim
