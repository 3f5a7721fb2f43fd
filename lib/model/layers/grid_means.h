// SPDX-License-Identifier: Apache-2.0
// Averages of a map over a grid of cells, also where gradients must have the same bits each time.
#pragma once

#include <torch/types.h>

namespace stoker::model {

/// x [B, C, H, W] -> [B, C, rows, columns]: LibTorch's adaptive_avg_pool2d, in channels-last on CPUs with a faster
/// gradient of the same bits (LibTorch 1.13). On CUDA that gradient is added up by atomic operations in any order, and
/// refused with
/// --deterministic: there it is cell_means().
torch::Tensor grid_means(const torch::Tensor& x, int64_t rows, int64_t columns);

/// grid_means() from one mean per cell: the same bits each time on every device, at the cost of rows x columns
/// operations.
torch::Tensor cell_means(const torch::Tensor& x, int64_t rows, int64_t columns);

}  // namespace stoker::model
