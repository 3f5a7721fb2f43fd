// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention: Vaswani et al., "Attention Is All You Need", 2017, equation 1. The one place
// that handles LibTorch's fused kernel for it, which exists from 2.0.
#pragma once

#include <torch/types.h>

namespace stoker::model {

/// softmax(q k^T / sqrt(D)) v for q, k, v [B, heads, S, D] -> [B, heads, S, D].
torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

}  // namespace stoker::model
