// SPDX-License-Identifier: Apache-2.0
#include "engine/step/state_snapshot.h"

#include <ATen/ops/cat.h>

#include <algorithm>

namespace stoker::engine {

/// One copy for all buffers of a type: a batch norm has three, and each copy of its own would be a launch on a device.
BufferSnapshot::BufferSnapshot(const torch::nn::Module& module) {
  const torch::NoGradGuard no_gradients;
  for (const torch::Tensor& buffer : module.buffers()) {
    const auto same_type = [&buffer](const Kept& kept) {
      return kept.buffers[0].dtype() == buffer.dtype() && kept.buffers[0].device() == buffer.device();
    };
    const auto kept = std::find_if(kept_.begin(), kept_.end(), same_type);
    (kept == kept_.end() ? kept_.emplace_back() : *kept).buffers.push_back(buffer);
  }
  for (Kept& kept : kept_) {
    std::vector<torch::Tensor> rows;
    for (const torch::Tensor& buffer : kept.buffers) rows.push_back(buffer.reshape({-1}));
    kept.values = at::cat(rows);
  }
}

void BufferSnapshot::restore() const {
  const torch::NoGradGuard no_gradients;
  for (const Kept& kept : kept_) {
    int64_t begin = 0;
    for (const torch::Tensor& buffer : kept.buffers) {
      torch::Tensor(buffer).copy_(kept.values.narrow(0, begin, buffer.numel()).view(buffer.sizes()));
      begin += buffer.numel();
    }
  }
}

}  // namespace stoker::engine
