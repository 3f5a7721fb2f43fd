// SPDX-License-Identifier: Apache-2.0
#include "engine/step/state_snapshot.h"

#include "model/buffers.h"

namespace stoker::engine {

BufferSnapshot::BufferSnapshot(const torch::nn::Module& module) {
  const torch::NoGradGuard no_gradients;
  for (const torch::Tensor& buffers : model::joined_buffers(module)) kept_.push_back({buffers, buffers.clone()});
}

void BufferSnapshot::restore() const {
  const torch::NoGradGuard no_gradients;
  for (const Kept& kept : kept_) torch::Tensor(kept.buffers).copy_(kept.values);
}

}  // namespace stoker::engine
