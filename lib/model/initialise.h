// SPDX-License-Identifier: Apache-2.0
// Starting weights that more than one family uses and that LibTorch's own init.h lacks. All draw from the
// global torch generator.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

namespace stoker::model {

/// Normal with mean 0 and deviation `std`, cut at [-2, 2]: the arithmetic and draws of Python's
/// torch.nn.init.trunc_normal_.
void truncated_normal(torch::Tensor tensor, double std);

/// Every convolution below `module`, in registration order: normal with variance 2 / fan-out (He et al.
/// 2015), bias 0.
void he_normal_convolutions(torch::nn::Module& module);

}  // namespace stoker::model
