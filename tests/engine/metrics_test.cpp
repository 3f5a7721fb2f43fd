// SPDX-License-Identifier: Apache-2.0
#include "engine/metrics.h"

#include <gtest/gtest.h>

namespace stoker::engine {
namespace {

TEST(MetricsTest, CountsTop1AndTop5AndSumsLoss) {
  ClassificationMetrics metrics(torch::kCPU, /*with_top5=*/true);
  // Scores fall from class 0 to 6: class 0 is a top-1 hit, 4 a top-5 hit, 6 neither.
  const torch::Tensor row = torch::arange(7, 0, -1).to(at::kFloat);
  const torch::Tensor logits = torch::stack({row, row, row});
  metrics.add(torch::tensor(2.5f), logits, torch::tensor({0, 4, 6}, at::kLong));
  metrics.add(torch::tensor(0.5f), logits, torch::tensor({0, 0, 5}, at::kLong));
  const MetricValues values = metrics.read();
  EXPECT_EQ(values.loss_sum, 3);
  EXPECT_EQ(values.top1_count, 3);
  EXPECT_EQ(values.top5_count, 4);
  EXPECT_EQ(values.images, 6);
}

TEST(MetricsTest, FewerThanFiveClassesMakeEveryImageATop5Hit) {
  ClassificationMetrics metrics(torch::kCPU, /*with_top5=*/true);
  metrics.add(torch::tensor(0.0f), torch::rand({4, 3}), torch::tensor({0, 1, 2, 0}, at::kLong));
  EXPECT_EQ(metrics.read().top5_count, 4);
}

TEST(MetricsTest, ContinuesFromSavedSumsExactly) {
  ClassificationMetrics unbroken(torch::kCPU, false), first(torch::kCPU, false), second(torch::kCPU, false);
  torch::manual_seed(0);
  for (int i = 0; i < 20; ++i) {
    const torch::Tensor loss = torch::rand({}), logits = torch::rand({8, 10}), labels = torch::randint(10, {8}, at::kLong);
    unbroken.add(loss, logits, labels);
    (i < 7 ? first : second).add(loss, logits, labels);
    if (i == 6) second.restore(first.read());
  }
  EXPECT_EQ(second.read().loss_sum, unbroken.read().loss_sum);
  EXPECT_EQ(second.read().top1_count, unbroken.read().top1_count);
  EXPECT_EQ(second.read().images, 160);
}

}  // namespace
}  // namespace stoker::engine
