// SPDX-License-Identifier: Apache-2.0
// Our batch norm with ReLU against LibTorch's operations one after the other.
#include "model/layers/norm_relu.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <limits>

#include "kernels/cpu.h"
#include "tests/model/layers/channels_last.h"

namespace stoker::model {
namespace {

constexpr char kWithoutKernels[] = "LibTorch's own batch norm is less exact, and its bits depend on the threads";

struct Case {
  int64_t images, channels, side;
  bool has_added;
};

struct Pass {
  torch::Tensor y, x_gradient, added_gradient, weight_gradient, bias_gradient, running_mean, running_variance;
};

torch::nn::BatchNorm2d made_norm(int64_t channels) {
  torch::nn::BatchNorm2d norm(channels);
  const torch::NoGradGuard no_gradients;
  norm->weight.uniform_(0.5, 1.5);
  norm->bias.uniform_(-0.5, 0.5);
  return norm;
}

enum class By { kernels, libtorch };

/// LibTorch's way is taken in double precision.
Pass run(const Case& c, By by, at::ScalarType type) {
  torch::manual_seed(3);
  const std::vector<int64_t> shape{c.images, c.channels, c.side, c.side};
  const at::ScalarType used = by == By::kernels ? type : at::kDouble;
  // Values that every type holds; a mean that is large beside the spread.
  const auto drawn = [&](double middle) {
    return channels_last((torch::randn(shape) + middle).to(type).to(used)).requires_grad_();
  };
  const torch::Tensor x = drawn(10), added = drawn(0);
  const torch::Tensor dy = channels_last(torch::randn(shape).to(type).to(used));
  torch::nn::BatchNorm2d norm = made_norm(c.channels);
  torch::Tensor y;
  if (by == By::kernels) {
    y = c.has_added ? norm_add_relu(norm, x, added) : norm_relu(norm, x);
  } else {
    norm->to(at::kDouble);
    y = c.has_added ? (norm(x) + added).relu() : norm(x).relu();
  }
  y.backward(dy);
  return {y.detach(),
          x.grad(),
          c.has_added ? added.grad() : torch::zeros({1}, used),
          norm->weight.grad(),
          norm->bias.grad(),
          norm->running_mean.clone(),
          norm->running_var.clone()};
}

void expect_near(const torch::Tensor& ours, const torch::Tensor& exact, double relative, const char* what) {
  const double scale = exact.abs().max().item<double>(),
               difference = (ours.to(at::kDouble) - exact).abs().max().item<double>();
  EXPECT_LE(difference, relative * std::max(scale, 1e-3)) << what;
}

class NormReluTest : public ::testing::TestWithParam<Case> {};

TEST_P(NormReluTest, AgreesWithLibTorchInDoublePrecision) {
  if (!kernels::has_norm_relu()) GTEST_SKIP() << kWithoutKernels;
  for (const auto& [type, tolerance] : {std::pair(at::kFloat, 2e-5), std::pair(at::kBFloat16, 1.0 / 128)}) {
    const Pass ours = run(GetParam(), By::kernels, type), exact = run(GetParam(), By::libtorch, type);
    EXPECT_EQ(ours.y.scalar_type(), type);
    EXPECT_TRUE(ours.y.is_contiguous(c10::MemoryFormat::ChannelsLast));
    expect_near(ours.y, exact.y, tolerance, "y");
    expect_near(ours.x_gradient, exact.x_gradient, tolerance, "gradient of x");
    expect_near(ours.added_gradient, exact.added_gradient, tolerance, "gradient of what was added");
    expect_near(ours.weight_gradient, exact.weight_gradient, tolerance, "gradient of the weight");
    expect_near(ours.bias_gradient, exact.bias_gradient, tolerance, "gradient of the bias");
    expect_near(ours.running_mean, exact.running_mean, 1e-6, "running mean");
    expect_near(ours.running_variance, exact.running_variance, 1e-5, "running variance");
  }
}

// Pieces of one row, of several that do not divide the rows, one piece in all; channels beyond one vector.
INSTANTIATE_TEST_SUITE_P(Shapes, NormReluTest,
                         ::testing::Values(Case{8, 16, 1, false}, Case{128, 32, 14, false}, Case{128, 32, 14, true},
                                           Case{3, 48, 7, true}, Case{9, 128, 4, false}, Case{2, 16400, 2, true}));

TEST(NormReluThreadsTest, LoopsOfOurFilesRunOnSeveralThreads) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  std::atomic<int> pieces{0};
  at::parallel_for(0, 2, /*grain_size=*/1, [&](int64_t, int64_t) { ++pieces; });
  at::set_num_threads(threads);
  EXPECT_EQ(pieces, 2) << "compiled without OpenMP, at::parallel_for is a plain loop";
}

TEST(NormReluThreadsTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  if (!kernels::has_norm_relu()) GTEST_SKIP() << kWithoutKernels;
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Pass one = run({64, 32, 14, true}, By::kernels, at::kBFloat16);
  at::set_num_threads(3);
  const Pass three = run({64, 32, 14, true}, By::kernels, at::kBFloat16);
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(one.y, three.y));
  EXPECT_TRUE(torch::equal(one.x_gradient, three.x_gradient));
  EXPECT_TRUE(torch::equal(one.weight_gradient, three.weight_gradient));
  EXPECT_TRUE(torch::equal(one.running_variance, three.running_variance));
}

TEST(NormReluNanTest, NanAndInfinityStayVisible) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      torch::Tensor x = channels_last(torch::randn({4, 16, 3, 3}).to(type));
      x.index_put_({1, 2, 0, 0}, bad);
      torch::nn::BatchNorm2d norm(16);
      const torch::Tensor y = norm_relu(norm, x).to(at::kFloat);
      EXPECT_TRUE(y.select(1, 2).isnan().all().item<bool>()) << "the channel has no mean";
      EXPECT_FALSE(y.select(1, 3).isnan().any().item<bool>());
    }
  }
}

TEST(NormReluCountTest, CountsBatchesInTrainingAndLeavesStatisticsAloneInEvaluation) {
  const torch::Tensor x = channels_last(torch::randn({4, 16, 3, 3}));
  torch::nn::BatchNorm2d norm(16);
  norm_relu(norm, x);
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  norm->eval();
  const torch::Tensor mean = norm->running_mean.clone(), expected = norm(x).relu();
  EXPECT_TRUE(torch::equal(norm_relu(norm, x), expected));
  EXPECT_TRUE(torch::equal(norm->running_mean, mean));
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
}

TEST(NormReluLayoutTest, WhatTheKernelsDoNotKnowGoesThroughLibTorch) {
  const torch::Tensor planes = torch::randn({4, 16, 3, 3}), narrow = channels_last(torch::randn({4, 5, 3, 3}));
  for (const torch::Tensor& x : {planes, narrow}) {
    torch::nn::BatchNorm2d ours(x.size(1)), theirs(x.size(1));
    EXPECT_TRUE(torch::equal(norm_relu(ours, x), theirs(x).relu()));
    EXPECT_TRUE(torch::equal(ours->running_var, theirs->running_var));
  }
}

TEST(NormReluGraphTest, AnInputThatNeedsNoGradientGetsNone) {
  const torch::Tensor x = channels_last(torch::randn({4, 16, 3, 3}));
  torch::nn::BatchNorm2d norm(16);
  norm_relu(norm, x).sum().backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(norm->weight.grad().defined());
  const torch::NoGradGuard no_gradients;
  EXPECT_FALSE(norm_relu(norm, x).requires_grad());
}

}  // namespace
}  // namespace stoker::model
