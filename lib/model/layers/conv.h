// SPDX-License-Identifier: Apache-2.0
// A convolution as the networks call it. In bfloat16 training on a CPU, the gradient of its weights goes through
// kernels/conv_weight_gradient where that is faster than LibTorch; everything else is LibTorch's.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/types.h>

namespace stoker::model {

/// conv(x), x [B, C, H, W].
torch::Tensor convolve(torch::nn::Conv2d& conv, const torch::Tensor& x);

}  // namespace stoker::model
