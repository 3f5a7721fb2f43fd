// SPDX-License-Identifier: Apache-2.0
// The state of torch's own random generators, which dropout and stochastic depth draw from.
#pragma once

#include <torch/types.h>

#include <vector>

#include "model/image_model.h"

namespace stoker::engine {

/// Generator states by the device kind they belong to: "cpu", and "cuda" for a CUDA device; uint8 [bytes] on
/// the CPU.
using RandomState = std::vector<model::NamedTensor>;

/// The state of the CPU's generator and of `device`'s. No sync with the device.
RandomState random_state(torch::Device device);
/// A state of a CUDA generator is left out where `device` is none.
void restore_random_state(const RandomState& state, torch::Device device);

/// One of `device` that nothing shares.
at::Generator make_generator(uint64_t seed, torch::Device device);

}  // namespace stoker::engine
