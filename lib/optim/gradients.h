// SPDX-License-Identifier: Apache-2.0
// Clipping, without a host sync.
#pragma once

#include <torch/types.h>

#include <vector>

#include "config/options.h"

namespace stoker::optim {

/// Scales gradients in place so that their global L2 norm is at most `limit` (Pascanu et al. 2013, algorithm
/// 1), or clamps each value to [-limit, limit]. Returns the norm before clipping, float32 [] on the device
/// (norm mode; undefined tensor in value mode).
torch::Tensor clip_gradients(const std::vector<torch::Tensor>& gradients, double limit, config::ClipMode mode);
/// Multiplies all gradients in place.
void multiply_gradients(const std::vector<torch::Tensor>& gradients, double factor);

}  // namespace stoker::optim
