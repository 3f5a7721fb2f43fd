// SPDX-License-Identifier: Apache-2.0
// Golden numbers: scripts/parity/plain_golden.py with torch 1.13.
#include "model/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/deterministic_fill.h"

namespace stoker::model {
namespace {

torch::Tensor loss_test_logits() { return uniform_numbers(4 * 6, 5).reshape({4, 6}) * 4; }
torch::Tensor loss_test_labels() { return torch::tensor({0, 5, 2, 2}, torch::kInt64); }

TEST(LossTest, EqualsTorchsSumWithAndWithoutSmoothing) {
  const torch::Tensor logits = loss_test_logits();
  EXPECT_NEAR(cross_entropy_sum(logits, loss_test_labels(), 0).item<double>(), 10.4329157, 1e-5);
  EXPECT_NEAR(cross_entropy_sum(logits, loss_test_labels(), 0.1).item<double>(), 10.6061411, 1e-5);
  EXPECT_NEAR(cross_entropy_sum(logits, loss_test_labels(), 0.5).item<double>(), 11.2990437, 1e-5);
}

TEST(LossTest, ComputesInFloatForBfloat16Logits) {
  const torch::Tensor logits = loss_test_logits().to(torch::kBFloat16);
  const torch::Tensor loss = cross_entropy_sum(logits, loss_test_labels(), 0.1);
  EXPECT_EQ(loss.scalar_type(), torch::kFloat32);
  EXPECT_NEAR(loss.item<double>(), 10.5988188, 1e-5);
}

TEST(LossTest, SumsSoThatPartsOfABatchAddUp) {
  const torch::Tensor logits = loss_test_logits();
  const torch::Tensor labels = loss_test_labels();
  const double whole = cross_entropy_sum(logits, labels, 0.1).item<double>();
  const double parts = cross_entropy_sum(logits.slice(0, 0, 1), labels.slice(0, 0, 1), 0.1).item<double>() +
                       cross_entropy_sum(logits.slice(0, 1), labels.slice(0, 1), 0.1).item<double>();
  EXPECT_NEAR(whole, parts, 1e-5);
}

TEST(LossTest, CertainAndRightCostsNothing) {
  const torch::Tensor logits = torch::tensor({{200.0F, 0.0F}, {0.0F, 200.0F}});
  EXPECT_EQ(cross_entropy_sum(logits, torch::tensor({0, 1}, torch::kInt64), 0).item<float>(), 0);
  EXPECT_NEAR(cross_entropy_sum(torch::zeros({3, 8}), torch::tensor({0, 7, 3}, torch::kInt64), 0).item<double>(),
              3 * std::log(8.0), 1e-5);
}

TEST(ClassWeightsTest, EachLossIsWeighedByItsClassAndNothingIsDividedByWeights) {
  // nn.CrossEntropyLoss(weight=w, reduction="sum", label_smoothing=s)(x, y), see scripts/parity/plain_golden.py
  const torch::Tensor logits = torch::tensor({0.5f, -1.0f, 2.0f, 0.25f, 1.5f, -0.75f, 3.0f, 0.0f, 1.0f}).view({3, 3});
  const torch::Tensor labels = torch::tensor({2, 0, 1}, torch::kInt64);
  const torch::Tensor weights = torch::tensor({0.5f, 2.0f, 1.25f});
  EXPECT_NEAR(cross_entropy_sum(logits, labels, 0, weights).item<double>(), 7.4316673, 1e-5);
  EXPECT_NEAR(cross_entropy_sum(logits, labels, 0.1, weights).item<double>(), 7.4041457, 1e-5);
}

}  // namespace
}  // namespace stoker::model
