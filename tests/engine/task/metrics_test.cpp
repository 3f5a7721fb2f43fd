// SPDX-License-Identifier: Apache-2.0
#include "engine/task/metrics.h"

#include <gtest/gtest.h>

namespace stoker::engine {
namespace {

TEST(RunningSumsTest, SumsLossAndScoreOverImages) {
  RunningSums sums(torch::kCPU);
  sums.add(torch::tensor(2.5f), torch::tensor(int64_t{3}), 4);
  sums.add(torch::tensor(0.5f), torch::tensor(1.25f), 2);
  sums.add(torch::tensor(1.0f), {}, 1);
  const SumValues values = sums.read();
  EXPECT_EQ(values.loss_sum, 4);
  EXPECT_EQ(values.score_sum, 4.25);
  EXPECT_EQ(values.images, 7);
}

TEST(RunningSumsTest, ContinuesFromSavedSumsExactly) {
  RunningSums unbroken(torch::kCPU), first(torch::kCPU), second(torch::kCPU);
  torch::manual_seed(0);
  for (int i = 0; i < 20; ++i) {
    const torch::Tensor loss = torch::rand({}), score = torch::rand({});
    unbroken.add(loss, score, 8);
    (i < 7 ? first : second).add(loss, score, 8);
    if (i == 6) second.restore(first.read());
  }
  EXPECT_EQ(second.read().loss_sum, unbroken.read().loss_sum);
  EXPECT_EQ(second.read().score_sum, unbroken.read().score_sum);
  EXPECT_EQ(second.read().images, 160);
}

}  // namespace
}  // namespace stoker::engine
