// SPDX-License-Identifier: Apache-2.0
#include "model/layers/grid_means.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/stack.h>

#include <vector>

namespace stoker::model {

torch::Tensor grid_means(const torch::Tensor& x, int64_t rows, int64_t columns) {
  return x.is_cpu() ? at::adaptive_avg_pool2d(x, {rows, columns}) : cell_means(x, rows, columns);
}

torch::Tensor cell_means(const torch::Tensor& x, int64_t rows, int64_t columns) {
  const int64_t height = x.size(2), width = x.size(3);
  std::vector<torch::Tensor> means;  // [B, C] each
  for (int64_t row = 0; row < rows; ++row) {
    // Cells overlap where they do not divide the map: from the floor of where one begins to the ceiling of its end.
    const torch::Tensor band = x.slice(2, row * height / rows, ((row + 1) * height + rows - 1) / rows);
    for (int64_t column = 0; column < columns; ++column) {
      means.push_back(
          band.slice(3, column * width / columns, ((column + 1) * width + columns - 1) / columns).mean({2, 3}));
    }
  }
  return at::stack(means, 2).view({x.size(0), x.size(1), rows, columns});
}

}  // namespace stoker::model
