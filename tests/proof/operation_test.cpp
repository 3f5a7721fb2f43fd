// SPDX-License-Identifier: Apache-2.0
// Calls of operators as values, recorded from passes and made for other numbers of images.
#include "proof/operation/operation.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "engine/device/precision.h"
#include "proof/operation/capture.h"
#include "proof/operation/replay.h"

namespace stoker::proof {
namespace {

const BeforeCall kNobody = [](const Operation&) {};

TEST(CaptureTest, AConvolutionAndItsGradientAreRecordedOnceEach) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(3, 8, 3));
  const auto operations = captured([&] { conv->forward(torch::rand({2, 3, 9, 9})).sum().backward(); }, kNobody);
  ASSERT_EQ(operations.size(), 2U);
  EXPECT_EQ(operations[0].name, "aten::convolution");
  EXPECT_EQ(operations[1].name, "aten::convolution_backward");
}

TEST(CaptureTest, UnderAutocastTheConvertedCallCounts) {
  torch::nn::Linear linear(4, 5);
  const engine::AutocastScope autocast({torch::kCPU, /*autocast=*/true, at::kBFloat16});
  const auto operations = captured([&] { linear->forward(torch::rand({2, 4})); }, kNobody);
  ASSERT_EQ(operations.size(), 1U);
  for (const c10::IValue& argument : operations[0].arguments) {
    if (argument.isTensor()) {
      EXPECT_EQ(argument.toTensor().scalar_type(), at::kBFloat16);
    }
  }
}

TEST(OperationsTest, ShapesForMoreImagesFollowFromTwoPasses) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(3, 8, 3));
  torch::nn::Linear linear(8 * 49, 5);
  Operations operations;
  operations.add(
      64,
      [&](int64_t images) {
        linear->forward(conv->forward(torch::rand({images, 3, 9, 9})).flatten(1)).sum().backward();
      },
      kNobody);
  Operations directly;
  directly.add(
      64,
      [&](int64_t) {  // the same for 2 and for 3: these sizes stay
        linear->forward(conv->forward(torch::rand({64, 3, 9, 9})).flatten(1)).sum().backward();
      },
      kNobody);
  std::vector<std::string> left, right;
  for (const auto& [key, counted] : operations.by_key()) left.push_back(key);
  for (const auto& [key, counted] : directly.by_key()) right.push_back(key);
  EXPECT_EQ(left, right);
  EXPECT_GE(left.size(), 4U);
}

TEST(OperationTest, AFamilyHoldsAnyNumberOfImagesAndNoOtherWeight) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(3, 8, 3)), other(torch::nn::Conv2dOptions(3, 9, 3));
  const auto of = [](torch::nn::Conv2d& layer, int64_t images) {
    const torch::NoGradGuard no_gradients;
    return captured([&] { layer->forward(torch::rand({images, 3, 9, 9})); }, kNobody).at(0);
  };
  EXPECT_EQ(family_of(of(conv, 1)), family_of(of(conv, 64)));
  EXPECT_NE(family_of(of(conv, 1)), family_of(of(other, 1)));
  EXPECT_NE(key_of(of(conv, 1)), key_of(of(conv, 64)));
}

TEST(OperationTest, IsNamedAsPeopleDo) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(16, 32, 1).stride(2).bias(false));
  const torch::NoGradGuard no_gradients;
  const auto operations = captured([&] { conv->forward(torch::rand({2, 16, 8, 8})); }, kNobody);
  EXPECT_EQ(text_of(operations.at(0)), "convolution, input 2x16x8x8, weight 32x16x1x1, stride 2x2, float32");
}

TEST(NoiseTest, HasShapeStridesAndTypeOfTheOperationAndFollowsItsSeed) {
  const Operation operation =
      operation_of("aten::mm", "", {torch::rand({5, 7}).t(), torch::rand({5, 1}).to(at::kBFloat16).expand({5, 3})});
  const auto one = with_noise(operation, 1), again = with_noise(operation, 1), other = with_noise(operation, 2);
  EXPECT_EQ(one[0].toTensor().sizes(), at::IntArrayRef({7, 5}));
  EXPECT_EQ(one[0].toTensor().strides(), at::IntArrayRef({1, 7}));
  EXPECT_EQ(one[1].toTensor().strides(), at::IntArrayRef({1, 0}));
  EXPECT_EQ(one[1].toTensor().scalar_type(), at::kBFloat16);
  EXPECT_TRUE(one[0].toTensor().equal(again[0].toTensor()));
  EXPECT_FALSE(one[0].toTensor().equal(other[0].toTensor()));
}

TEST(NoiseTest, NanStandsBehindTheLastElementForLibrariesThatReadOn) {
  for (const at::Tensor& shape :
       {torch::rand({5, 7}), torch::rand({2, 3, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast),
        torch::rand({4, 9}).to(at::kBFloat16)}) {
    const at::Tensor noise = with_noise(operation_of("aten::relu", "", {shape}), 1)[0].toTensor();
    EXPECT_FALSE(noise.isnan().any().item<bool>());
    const at::Tensor behind = noise.as_strided({64}, {1}, shape.numel());
    EXPECT_TRUE(behind.isnan().all().item<bool>()) << shape.sizes();
  }
}

}  // namespace
}  // namespace stoker::proof
