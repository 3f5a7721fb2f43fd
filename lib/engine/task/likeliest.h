// SPDX-License-Identifier: Apache-2.0
// The class that outputs of several classes speak for.
#pragma once

#include <torch/types.h>

#include <tuple>

namespace stoker::engine {

/// logits [B, classes] -> int64 [B], the first of equal ones. The same as argmax(), which takes 0.4 us a value on CPUs
/// (LibTorch 1.13).
inline torch::Tensor likeliest(const torch::Tensor& logits) { return std::get<1>(logits.max(/*dim=*/1)); }

}  // namespace stoker::engine
