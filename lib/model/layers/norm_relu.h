// SPDX-License-Identifier: Apache-2.0
// Batch norm and what follows it in a residual network, as one operation. On a CPU, where LibTorch passes
// over memory for each of its operations, training in channels-last goes through kernels/norm_relu_kernels; elsewhere
// LibTorch's operations are called one after the other.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>

namespace stoker::model {

/// relu(norm(x)), x [B, C, H, W], which stays as it is. In training the running statistics move.
torch::Tensor norm_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& x);
/// relu(norm(x) + added), `added` of x's shape.
torch::Tensor norm_add_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& x, const torch::Tensor& added);

}  // namespace stoker::model
