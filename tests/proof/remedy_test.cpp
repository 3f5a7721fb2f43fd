// SPDX-License-Identifier: Apache-2.0
// Other ways to compute are right, and are taken for the operations that they are for.
#include "proof/remedy/remedy.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "proof/operation/capture.h"
#include "proof/operation/replay.h"
#include "proof/remedy/operator_replacements.h"

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
  const auto operations = captured(
      [&] {
        const torch::Tensor x = torch::rand({3, 16, 11, 9}).requires_grad_();
        (point->forward(x).sum() + plain->forward(x).sum() + linear->forward(x.mean({2, 3})).sum()).backward();
      },
      [](const Operation&) {});
  Remedy remedy;
  for (const Operation& operation : operations) {
    const bool is_convolution = operation.name.find("convolution") != std::string::npos;
    const bool is_product = operation.name == "aten::mm" || operation.name == "aten::addmm";
    const bool is_point = text_of(operation).find("x1x1") != std::string::npos;
    remedy.ways[family_of(operation)] = is_product                   ? Alternative::own_product
                                        : is_convolution && is_point ? Alternative::sliced
                                                                     : Alternative::without_onednn;
  }
  apply(remedy);
  for (const Operation& operation : operations) {
    ReplaySettings settings;
    settings.compares_all = true;
    const Finding finding = replayed(operation, settings);
    EXPECT_TRUE(finding.is_right) << key_of(operation) << ": " << finding.fault;
  }
  apply(Remedy());
}

}  // namespace
}  // namespace stoker::proof
