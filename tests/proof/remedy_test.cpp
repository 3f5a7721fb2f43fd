// SPDX-License-Identifier: Apache-2.0
// Other ways to compute are right, and are taken for the operations that they are for.
#include "proof/remedy/remedy.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "proof/operation/capture.h"
#include "proof/operation/replay.h"
#include "proof/remedy/operator_replacements.h"
#include "proof/remedy/own_batch_norm.h"

namespace stoker::proof {
namespace {

TEST(OwnProductTest, AgreesWithLibTorchInDoublePrecision) {
  for (const auto& [rows, terms, columns] : {std::tuple(1, 1, 1), std::tuple(7, 130, 65), std::tuple(64, 3, 200)}) {
    const at::Tensor left = torch::randn({rows, terms}), right = torch::randn({columns, terms}).t();
    const at::Tensor expected = left.to(at::kDouble).matmul(right.to(at::kDouble));
    EXPECT_TRUE(torch::allclose(own_product(left, right).to(at::kDouble), expected, 1e-4, 1e-4));
  }
  const at::Tensor left = torch::randn({3, 9, 5}), right = torch::randn({3, 5, 70});
  EXPECT_TRUE(torch::allclose(own_product(left, right), left.matmul(right), 1e-4, 1e-4));
}

TEST(OwnBatchNormTest, AgreesWithDoublePrecisionOverMillionsOfPixels) {
  const at::Tensor input =
      (torch::randn({4, 3, 600, 500}) + 2).contiguous(at::MemoryFormat::ChannelsLast);  // 1.2 million pixels
  const at::Tensor weight = torch::rand({3}), bias = torch::rand({3});
  at::Tensor mean = torch::zeros({3}), variance = torch::ones({3});
  const auto [output, of_mean, inverse] = own_batch_norm(input, weight, bias, mean, variance, 0.1, 1e-5);
  const at::Tensor x = input.to(at::kDouble), exact_mean = x.mean({0, 2, 3}),
                   exact_variance = x.var(at::IntArrayRef({0, 2, 3}), /*unbiased=*/false);
  const auto in_double = [](const at::Tensor& tensor) { return tensor.to(at::kDouble); };
  EXPECT_TRUE(torch::allclose(in_double(of_mean), exact_mean, 1e-6, 0));
  EXPECT_TRUE(torch::allclose(in_double(inverse), (exact_variance + 1e-5).rsqrt(), 1e-6, 0));
  EXPECT_TRUE(torch::allclose(in_double(mean), 0.1 * exact_mean, 1e-6, 0));
  EXPECT_TRUE(torch::allclose(in_double(variance), 0.9 + 0.1 * x.var({0, 2, 3}), 1e-6, 0));
  const auto as_channels = [](const at::Tensor& tensor) { return tensor.to(at::kDouble).view({1, 3, 1, 1}); };
  const at::Tensor expected = (x - as_channels(exact_mean)) * as_channels((exact_variance + 1e-5).rsqrt());
  EXPECT_TRUE(torch::allclose(in_double(output), expected * as_channels(weight) + as_channels(bias), 1e-6, 1e-6));
  EXPECT_EQ(output.strides(), input.strides());
}

TEST(OwnBatchNormTest, ItsBitsDoNotDependOnTheNumberOfThreads) {
  const at::Tensor input = torch::randn({3, 5, 70, 90}).to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
  const int threads = at::get_num_threads();
  const auto computed = [&] { return std::get<2>(own_batch_norm(input, torch::ones({5}), {}, {}, {}, 0.1, 1e-5)); };
  at::set_num_threads(1);
  const at::Tensor one = computed();
  at::set_num_threads(4);
  EXPECT_TRUE(torch::equal(computed(), one));
  at::set_num_threads(threads);
}

TEST(RemedyTest, TravelsAsJson) {
  Remedy remedy;
  remedy.answers_cache_sizes = true;
  remedy.isa = "AVX2";
  remedy.ways["aten::mm Float Float"] = Alternative::own_product;
  remedy.ways["aten::convolution x"] = Alternative::sliced;
  EXPECT_TRUE(core::Json(remedy).get<Remedy>() == remedy);
  EXPECT_EQ(text_of(remedy),
            "oneDNN given usual cache sizes, oneDNN limited to AVX2, 1 operation as a slice and a convolution without "
            "stride, 1 operation by loops of this program");
}

TEST(RemedyTest, OperationsInOtherWaysAreRight) {
  torch::nn::Conv2d point(torch::nn::Conv2dOptions(16, 8, 1).stride(2)), plain(torch::nn::Conv2dOptions(16, 8, 3));
  torch::nn::Linear linear(16, 5);
  torch::nn::BatchNorm2d norm(8);
  const auto operations = captured(
      [&] {
        const torch::Tensor x = torch::rand({3, 16, 11, 9}).requires_grad_();
        (norm->forward(point->forward(x)).square().sum() + plain->forward(x).sum() +
         linear->forward(x.mean({2, 3})).sum())
            .backward();
      },
      [](const Operation&) {});
  const Remedy usual = known_remedy();
  Remedy remedy = usual;
  for (const Operation& operation : operations) {
    const bool is_convolution = operation.name.find("convolution") != std::string::npos;
    const bool is_product = operation.name == "aten::mm" || operation.name == "aten::addmm";
    const bool is_point = text_of(operation).find("x1x1") != std::string::npos;
    remedy.ways[family_of(operation)] = operation.name == "aten::native_batch_norm" ? Alternative::own_sums
                                        : is_product                                ? Alternative::own_product
                                        : is_convolution && is_point                ? Alternative::sliced
                                                                                    : Alternative::without_onednn;
  }
  apply(remedy);
  for (const Operation& operation : operations) {
    ReplaySettings settings;
    settings.compares_all = true;
    const Finding finding = replayed(operation, settings);
    EXPECT_TRUE(finding.is_right) << key_of(operation) << ": " << finding.fault;
  }
  apply(usual);
}

}  // namespace
}  // namespace stoker::proof
