// SPDX-License-Identifier: Apache-2.0
// A convolution as the networks call it. In training on a CPU, the gradient of its weights goes through
// kernels/conv_weight_gradient in bfloat16, and all of a 3 x 3 convolution of float32 through kernels/winograd where
// that is asked for, each where it is faster than LibTorch; everything else is LibTorch's.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/types.h>

namespace stoker::model {

/// conv(x), x [B, C, H, W].
torch::Tensor convolve(torch::nn::Conv2d& conv, const torch::Tensor& x);

/// Whether this build and this CPU have kernels/winograd.
bool has_winograd();
/// Asks for them, in the whole process; without effect where there are none. Off at the start.
void use_winograd(bool use);

}  // namespace stoker::model
