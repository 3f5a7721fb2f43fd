// SPDX-License-Identifier: Apache-2.0
// Stands for the rest of this module in a build with -DSTOKER_KERNELS=OFF: no kernel is there, and none may be called.
#include "core/error.h"
#include "kernels/conv_weight_gradient.h"
#include "kernels/cpu.h"
#include "kernels/optimizer_step.h"

namespace stoker::kernels {
namespace {

[[noreturn]] void refuse() { throw core::Error(core::ErrorKind::bug, "this build has no kernels of its own"); }

}  // namespace

bool has_conv_weight_gradient() { return false; }
bool has_optimizer_step() { return false; }

void conv_weight_gradient(const ConvShape2d&, const uint16_t*, const uint16_t*, const WeightStrides&, float*,
                          ParallelFor) {
  refuse();
}

void sgd_step(float*, const float*, float*, int64_t, const SgdStep&, ParallelFor) { refuse(); }
void adam_step(float*, const float*, float*, float*, int64_t, const AdamStep&, ParallelFor) { refuse(); }

}  // namespace stoker::kernels
