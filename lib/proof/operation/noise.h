// SPDX-License-Identifier: Apache-2.0
// Arguments of an operation with random numbers in them.
#pragma once

#include <ATen/core/stack.h>

#include <cstdint>

#include "proof/operation/operation.h"

namespace stoker::proof {

/// Tensors of `operation` on its device, filled with uniform numbers of [-1, 1) that `seed` decides; of integer types
/// with zeros. All else as it is.
torch::jit::Stack with_noise(const Operation& operation, uint64_t seed);

}  // namespace stoker::proof
