// SPDX-License-Identifier: Apache-2.0
// The buffers of a network, batch norm's running statistics above all, in a few pieces of memory: what is done to all
// of them (averages, copies, sums over replicas) is then a few operations instead of some for each.
#pragma once

#include <torch/nn/module.h>

#include <vector>

namespace stoker::model {

/// Lays the buffers of each type one behind another in one tensor, of which they are views from here on; tensors,
/// names, shapes and values stay. Moving the module to another device takes them apart again.
void join_buffers(torch::nn::Module& module);

/// Tensors that share their memory with all buffers and with nothing else that has a meaning: one for each row of
/// buffers that lie one behind another, [n], the others as they are. In the order of the first buffer of each.
std::vector<torch::Tensor> joined_buffers(const torch::nn::Module& module);

}  // namespace stoker::model
