// SPDX-License-Identifier: Apache-2.0
#include "engine/step/state_snapshot.h"

namespace stoker::engine {

BufferSnapshot::BufferSnapshot(const torch::nn::Module& module) {
  const torch::NoGradGuard no_gradients;
  for (const torch::Tensor& buffer : module.buffers()) kept_.emplace_back(buffer, buffer.clone());
}

void BufferSnapshot::restore() const {
  const torch::NoGradGuard no_gradients;
  for (auto& [buffer, value] : kept_) torch::Tensor(buffer).copy_(value);
}

}  // namespace stoker::engine
