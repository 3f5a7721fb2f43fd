// SPDX-License-Identifier: Apache-2.0
// Optimizer steps on the CPU: each reads and writes every value once. Only this module includes this file.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "optim/rules.h"

namespace stoker::optim {

/// Whether element i of both lies at the same place in memory: same shape, strides equal wherever they
/// matter.
bool same_layout(const torch::Tensor& a, const torch::Tensor& b);
/// `tensor` itself when it has the layout of `like`, else a copy that has.
torch::Tensor with_layout_of(const torch::Tensor& like, const torch::Tensor& tensor);

/// Moves `parameter`. All tensors: float32 on the CPU, dense, of one layout. `momentum` may be undefined
/// when rule.momentum is 0.
void one_pass_sgd(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& momentum,
                  const SgdRule& rule);
/// `step` is 1 for the first step.
void one_pass_adam(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& exp_avg,
                   const torch::Tensor& exp_avg_sq, const AdamRule& rule, int64_t step);

}  // namespace stoker::optim
