// SPDX-License-Identifier: Apache-2.0
#include "model/layers/grid_means.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <torch/version.h>

#include "tests/model/layers/channels_last.h"

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

TEST(GridMeansTest, GradientsOnCpusAreThoseOfAdaptivePoolingInItsTypesAndLayouts) {
  torch::manual_seed(4);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const bool is_last : {false, true}) {
      for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{{4, 4}, {3, 3}, {7, 5}, {2, 6}}) {
        for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{2, 2}, {4, 1}, {3, 2}}) {
          torch::Tensor values = torch::randn({2, 16, height, width}).to(type);
          if (is_last) values = channels_last(values);
          const torch::Tensor weights = torch::randn({2, 16, rows, columns}).to(type);
          torch::Tensor x = values.clone().requires_grad_(), y = values.clone().requires_grad_();
          const torch::Tensor ours = grid_means(x, rows, columns), theirs = at::adaptive_avg_pool2d(y, {rows, columns});
          ours.backward(weights);
          theirs.backward(weights);
          const std::string of =
              c10::str(type, is_last ? " last " : " first ", height, " x ", width, " to ", rows, " x ", columns);
          EXPECT_TRUE(torch::equal(ours, theirs)) << of;
          EXPECT_EQ(x.grad().suggest_memory_format(), y.grad().suggest_memory_format()) << of;
          EXPECT_EQ(x.grad().scalar_type(), type) << of;
          const double rounding = type == at::kFloat ? 1e-6 : 1e-2;  // versions divide and add in different precision
          EXPECT_TRUE(torch::allclose(x.grad(), y.grad(), rounding, rounding)) << of;
#if TORCH_VERSION_MAJOR == 1
          EXPECT_TRUE(torch::equal(x.grad(), y.grad())) << of;
#endif
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker::model
