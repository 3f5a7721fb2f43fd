// SPDX-License-Identifier: Apache-2.0
// Golden numbers: scripts/parity/conv_lstm_golden.py with torch 1.13.
#include "model/layers/conv_lstm.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "tests/model/deterministic_fill.h"

namespace stoker::model {
namespace {

constexpr int64_t kBatch = 2, kSteps = 3, kIn = 3, kHidden = 2, kHeight = 4, kWidth = 5;

torch::Tensor golden_clip() {
  return uniform_numbers(kBatch * kSteps * kIn * kHeight * kWidth, 999)
             .reshape({kBatch, kSteps, kIn, kHeight, kWidth}) *
         2;
}

TEST(ConvLstmTest, ComputesItsEquations) {
  ConvLstm memory(kIn, kHidden, 3);
  fill_by_formula(memory);
  const torch::Tensor states = memory.forward(golden_clip());
  ASSERT_EQ(states.sizes(), (std::vector<int64_t>{kBatch, kSteps, kHidden, kHeight, kWidth}));
  EXPECT_TRUE(near_golden(states.mean({3, 4}),
                          {-0.0219475422, 0.00871677417, -0.0302916355, 0.0507281944, -0.0261966828, -0.0498448685,
                           0.0393063091, -0.00407649064, -0.0291200392, 0.040478386, 0.00706412643, 0.0329750441},
                          1e-5))
      << states.mean({3, 4});
  EXPECT_TRUE(near_golden(states.select(1, 2).select(1, 1).select(1, 3),
                          {-0.111465573, 0.139418438, -0.231055126, 0.0638846606, -0.462063074, 0.138680786,
                           -0.0614001043, -0.022862833, -0.0411728658, -0.0285682771},
                          1e-5));
}

TEST(ConvLstmTest, ForgetsNothingAtFirst) {
  ConvLstm memory(kIn, kHidden, 3);
  const torch::Tensor bias = memory.named_parameters()["input.bias"];
  EXPECT_TRUE(torch::equal(bias, torch::tensor({0.F, 0.F, 1.F, 1.F, 0.F, 0.F, 0.F, 0.F})));
}

TEST(ConvLstmTest, LaterFramesChangeNoEarlierState) {
  ConvLstm memory(kIn, kHidden, 3);
  torch::Tensor clip = golden_clip();
  const torch::Tensor before = memory.forward(clip);
  clip.select(1, 2).zero_();
  const torch::Tensor after = memory.forward(clip);
  EXPECT_TRUE(torch::equal(before.slice(1, 0, 2), after.slice(1, 0, 2)));
  EXPECT_FALSE(torch::equal(before.select(1, 2), after.select(1, 2)));
}

}  // namespace
}  // namespace stoker::model
