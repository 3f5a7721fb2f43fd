// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's algorithm against LibTorch's in double precision, and where they are taken.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>
#include <thread>

#include "kernels/cpu.h"
#include "model/layers/conv.h"
#include "model/model.h"

namespace stoker::model {
namespace {

using Options = torch::nn::Conv2dOptions;

/// For its lifetime they are asked for, and operations have one thread.
class Winograd {
 public:
  Winograd() {
    use_winograd(true);
    at::set_num_threads(1);
  }
  ~Winograd() {
    use_winograd(false);
    at::set_num_threads(threads_);
  }
  Winograd(const Winograd&) = delete;
  Winograd& operator=(const Winograd&) = delete;

 private:
  const int threads_ = at::get_num_threads();
};

#define SKIP_WITHOUT_WINOGRAD() \
  if (!has_winograd()) GTEST_SKIP() << "needs kernels in the build, oneDNN 2.x and a CPU with AVX-512"

bool is_winograd(const torch::Tensor& y) { return y.grad_fn()->name().find("WinogradConv") != std::string::npos; }

struct WinogradCase {
  int64_t images, in, out, height, width;
};

struct WinogradPass {
  torch::Tensor y, x_gradient, weight_gradient;
};

WinogradPass run_winograd(const WinogradCase& c, at::ScalarType type, c10::MemoryFormat of_images,
                          c10::MemoryFormat of_weights) {
  torch::manual_seed(3);
  torch::nn::Conv2d conv(Options(c.in, c.out, 3).padding(1).bias(false));
  conv->weight.set_data(conv->weight.detach().to(type).contiguous(of_weights));
  const torch::Tensor x =
      torch::randn({c.images, c.in, c.height, c.width}).to(type).contiguous(of_images).requires_grad_();
  const torch::Tensor y = convolve(conv, x);
  EXPECT_EQ(is_winograd(y), type == at::kFloat);
  y.backward(torch::randn(y.sizes()).to(type));  // contiguous, whatever the layout of y
  return {y.detach(), x.grad(), conv->weight.grad()};
}

/// Root mean square of the difference by that of the values.
double rms_difference(const torch::Tensor& ours, const torch::Tensor& exact) {
  return ((ours.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

class WinogradTest : public ::testing::TestWithParam<WinogradCase> {};

TEST_P(WinogradTest, AgreesWithLibTorchInDoublePrecision) {
  SKIP_WITHOUT_WINOGRAD();
  const Winograd winograd;
  constexpr auto kFirst = c10::MemoryFormat::Contiguous, kLast = c10::MemoryFormat::ChannelsLast;
  const WinogradPass exact = run_winograd(GetParam(), at::kDouble, kFirst, kFirst);
  for (const auto of_images : {kFirst, kLast}) {
    for (const auto of_weights : {kFirst, kLast}) {
      const WinogradPass ours = run_winograd(GetParam(), at::kFloat, of_images, of_weights);
      EXPECT_TRUE(ours.y.is_contiguous(of_images));
      EXPECT_TRUE(ours.x_gradient.is_contiguous(of_images));
      EXPECT_TRUE(ours.weight_gradient.is_contiguous(of_weights)) << "as the weights, for the optimizer";
      EXPECT_LT(rms_difference(ours.y, exact.y), 1e-5);
      EXPECT_LT(rms_difference(ours.x_gradient, exact.x_gradient), 1e-5);
      EXPECT_LT(rms_difference(ours.weight_gradient, exact.weight_gradient), 1e-5);
    }
  }
}

// One image and several; tiles that reach beyond the image; other sides; channels that fill vectors of 16, or do not.
INSTANTIATE_TEST_SUITE_P(Shapes, WinogradTest,
                         ::testing::Values(WinogradCase{2, 64, 64, 16, 16}, WinogradCase{1, 32, 48, 7, 7},
                                           WinogradCase{3, 96, 32, 10, 12}, WinogradCase{5, 64, 128, 14, 28},
                                           WinogradCase{1, 256, 256, 8, 8}));

TEST(WinogradUseTest, OnlyWhereItIsAskedForAndFaster) {
  SKIP_WITHOUT_WINOGRAD();
  const torch::Tensor x = torch::randn({2, 64, 12, 12});
  const auto is_taken = [](const Options& options, const torch::Tensor& images) {
    torch::nn::Conv2d conv(options);
    return is_winograd(convolve(conv, images));
  };
  const Options plain = Options(64, 32, 3).padding(1).bias(false);
  EXPECT_FALSE(is_taken(plain, x)) << "nobody asked";
  const Winograd winograd;
  EXPECT_TRUE(is_taken(plain, x));
  EXPECT_FALSE(is_taken(Options(64, 32, 3).padding(1), x)) << "bias";
  EXPECT_FALSE(is_taken(Options(64, 32, 1).bias(false), x)) << "kernel";
  EXPECT_FALSE(is_taken(Options(plain).stride(2), x));
  EXPECT_FALSE(is_taken(Options(plain).padding(0), x));
  EXPECT_FALSE(is_taken(Options(plain).padding(2).dilation(2), x));
  EXPECT_FALSE(is_taken(Options(plain).groups(2), x));
  EXPECT_FALSE(is_taken(Options(plain).padding_mode(torch::kReflect), x));
  EXPECT_FALSE(is_taken(Options(64, 16, 3).padding(1).bias(false), x)) << "too few channels";
  EXPECT_FALSE(is_taken(plain, torch::randn({2, 64, 5, 5}))) << "most of the tiles would be padding";
  EXPECT_FALSE(is_taken(plain, x.transpose(2, 3))) << "layout";
  torch::nn::Conv2d conv(plain);
  conv->eval();
  EXPECT_FALSE(is_winograd(convolve(conv, x))) << "evaluation has the bits of every program";
}

TEST(WinogradUseTest, APassWithoutGradientsHasTheSameBits) {
  SKIP_WITHOUT_WINOGRAD();
  const Winograd winograd;
  torch::nn::Conv2d conv(Options(32, 32, 3).padding(1).bias(false));
  const torch::Tensor x = torch::randn({2, 32, 12, 12});
  const torch::Tensor with = convolve(conv, x).detach();
  const torch::NoGradGuard no_gradients;
  EXPECT_TRUE(torch::equal(convolve(conv, x), with)) << "checkpointed stages are computed twice";
}

TEST(WinogradUseTest, AFrozenConvolutionStillPassesGradientsOn) {
  SKIP_WITHOUT_WINOGRAD();
  const Winograd winograd;
  torch::nn::Conv2d conv(Options(32, 32, 3).padding(1).bias(false));
  conv->weight.set_requires_grad(false);
  const torch::Tensor x = torch::randn({2, 32, 12, 12}).requires_grad_();
  const torch::Tensor y = convolve(conv, x);
  EXPECT_TRUE(is_winograd(y));
  y.sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(conv->weight.grad().defined());
}

TEST(WinogradUseTest, SeveralThreadsHaveTheBitsOfOne) {
  SKIP_WITHOUT_WINOGRAD();
  const Winograd winograd;
  const auto pass = [] {
    const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(9);
    const torch::Tensor x = at::randn({2, 64, 16, 16}, random, at::kFloat).requires_grad_();
    torch::nn::Conv2d conv(Options(64, 64, 3).padding(1).bias(false));
    conv->weight.set_data(at::randn({64, 64, 3, 3}, random, at::kFloat));
    convolve(conv, x).square().sum().backward();
    return torch::cat({x.grad().flatten(), conv->weight.grad().flatten()});
  };
  const torch::Tensor alone = pass();
  std::vector<torch::Tensor> results(4);
  std::vector<std::thread> threads;
  for (torch::Tensor& result : results) {
    threads.emplace_back([&result, &pass] {
      at::set_num_threads(1);
      for (int i = 0; i < 5; ++i) result = pass();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const torch::Tensor& result : results) EXPECT_TRUE(torch::equal(result, alone));
}

/// How many operations of a network's training pass are ours.
int64_t taken_by(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  spec.num_classes = 5;
  spec.width = 32;
  const auto network = make_model(spec);
  network->train();
  int64_t taken = 0;
  std::vector<std::shared_ptr<torch::autograd::Node>> open = {network->forward(torch::randn({2, 3, 64, 64})).grad_fn()};
  std::set<torch::autograd::Node*> seen;
  while (!open.empty()) {
    const auto node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node.get()).second) continue;
    taken += node->name().find("WinogradConv") != std::string::npos ? 1 : 0;
    for (const auto& edge : node->next_edges()) open.push_back(edge.function);
  }
  return taken;
}

TEST(WinogradUseTest, NetworksHaveTheirConvolutionsTaken) {
  SKIP_WITHOUT_WINOGRAD();
  EXPECT_EQ(taken_by("resnet18"), 0);
  const Winograd winograd;
  EXPECT_EQ(taken_by("resnet18"), 10) << "of stride 1 at 16 x 16 (4), 8 x 8 (3) and 4 x 4 pixels (3), none at 2 x 2";
  EXPECT_GT(taken_by("resnet9"), 0);
  EXPECT_GT(taken_by("small_cnn"), 0);
  EXPECT_GT(taken_by("peer_cnn"), 0);
}

}  // namespace
}  // namespace stoker::model
