// SPDX-License-Identifier: Apache-2.0
#include "engine/step/kept_state.h"

namespace stoker::engine {

KeptBuffers::KeptBuffers(const torch::nn::Module& module) {
  const torch::NoGradGuard no_gradients;
  for (const torch::Tensor& buffer : module.buffers()) kept_.emplace_back(buffer, buffer.clone());
}

void KeptBuffers::restore() const {
  const torch::NoGradGuard no_gradients;
  for (auto& [buffer, value] : kept_) torch::Tensor(buffer).copy_(value);
}

}  // namespace stoker::engine
