// SPDX-License-Identifier: Apache-2.0
// Gradient checkpointing (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"): a stage keeps
// only its input and computes its inner activations a second time in the backward pass.
#pragma once

#include <torch/types.h>

#include "model/image_model.h"

namespace stoker::engine {

/// A model::StageRunner. The second pass draws the same random numbers, computes in the same precision and
/// leaves buffers (batch norm's running statistics) as the first pass left them, so that gradients and
/// buffers are those of a stage that runs directly. Without gradients it just runs the stage. Between the
/// forward and the backward pass the stage's parameters must not change. input, result [B, ...].
torch::Tensor run_and_recompute(torch::nn::Module& stage, const model::StageForward& forward,
                                const torch::Tensor& input);

}  // namespace stoker::engine
