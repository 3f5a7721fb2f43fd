// SPDX-License-Identifier: Apache-2.0
// Steps of SGD and Adam that read and write every value once, as loops over memory. Arithmetic is torch.optim's. On a
// CPU these are bound by memory, so that one pass beats a chain of tensor operations.
// Gain on one update against LibTorch's foreach operations, two threads: AdamW 1.39 times for resnet18 at 32 px in
// batches of 16 (LibTorch 2.6: 1.43), 1.47 for vit_s_16 at 64 px in batches of 4; SGD 1.18 to 1.25 for that resnet18
// (LibTorch 2.6: 1.20), less where a batch takes longer: 1.02 to 1.07 for tiny_cnn.
#pragma once

#include <cstdint>

#include "kernels/cpu.h"

namespace stoker::kernels {

/// Scalars of SGD in the precision of the values.
struct SgdStep {
  float lr = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};

/// Scalars of Adam and AdamW at one step.
struct AdamStep {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, eps;
  float step_size;        ///< lr / (1 - beta1^t)
  float root_correction;  ///< sqrt(1 - beta2^t)
  float coupled_decay;    ///< weight decay added to the gradient
  float keep;             ///< 1 - lr * weight_decay when decoupled
};

/// Moves `count` parameters p along their gradients g; m holds their momentum, and is not looked at when step.momentum
/// is 0. Only where has_optimizer_step().
void sgd_step(float* p, const float* g, float* m, int64_t count, const SgdStep& step, ParallelFor parallel_for);
/// As sgd_step(); m and v hold the averages of gradients and of their squares.
void adam_step(float* p, const float* g, float* m, float* v, int64_t count, const AdamStep& step,
               ParallelFor parallel_for);

}  // namespace stoker::kernels
