// SPDX-License-Identifier: Apache-2.0
#include "model/layers/grid_means.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace stoker::model {
namespace {

TEST(GridMeansTest, MeansOfCellsAndTheirGradientsAreThoseOfAdaptivePooling) {
  torch::manual_seed(3);
  for (const auto& [height, width] :
       std::vector<std::pair<int64_t, int64_t>>{{4, 4}, {3, 5}, {7, 2}, {1, 1}, {13, 9}}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{2, 2}, {4, 1}, {1, 1}, {3, 2}}) {
      const torch::Tensor values = torch::randn({2, 3, height, width}, torch::kFloat64);
      const torch::Tensor weights = torch::randn({2, 3, rows, columns}, torch::kFloat64);
      torch::Tensor x = values.clone().requires_grad_(), y = values.clone().requires_grad_();
      const torch::Tensor ours = cell_means(x, rows, columns), theirs = at::adaptive_avg_pool2d(y, {rows, columns});
      (ours * weights).sum().backward();
      (theirs * weights).sum().backward();
      EXPECT_TRUE(torch::allclose(ours, theirs, 1e-12, 1e-12)) << height << " x " << width;
      EXPECT_TRUE(torch::allclose(x.grad(), y.grad(), 1e-12, 1e-12)) << height << " x " << width;
    }
  }
}

}  // namespace
}  // namespace stoker::model
