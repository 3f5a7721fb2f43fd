// SPDX-License-Identifier: Apache-2.0
// How an operation gets onto the simulated device, for who has kernels of his own to add.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>

namespace stoker::fixtures {

/// Computes on tensors of the CPU: takes the arguments of an operation and leaves its results, on a stack.
using Compute = std::function<void(torch::jit::Stack&)>;

/// Queues `operation`, whose arguments are on `stack`, and leaves its results there: tensors of the device whose
/// numbers come later. Their shapes are found by computing with zeros first. Throws where a tensor with more than one
/// number lies on the CPU.
void queue(const c10::OperatorHandle& operation, torch::jit::Stack& stack, const Compute& compute);

}  // namespace stoker::fixtures
