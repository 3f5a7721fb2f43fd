// SPDX-License-Identifier: Apache-2.0
// Targets in their own unit and as the network learns them: (target - mean) / scale.
#pragma once

#include <torch/types.h>

#include "config/options.h"

namespace stoker::engine {

class TargetScaling {
 public:
  TargetScaling(const config::ResolvedTaskOptions& options, torch::Device device)
      : mean_(row(options.target_mean, 0, device)), scale_(row(options.target_scale, 1, device)) {}

  /// All float32 [B, T].
  torch::Tensor scaled(const torch::Tensor& targets) const { return (targets - mean_) / scale_; }
  torch::Tensor unscaled(const torch::Tensor& outputs) const { return outputs.to(at::kFloat) * scale_ + mean_; }
  const torch::Tensor& scale() const { return scale_; }

 private:
  static torch::Tensor row(const std::vector<double>& values, double otherwise, torch::Device device) {
    return torch::tensor(values.empty() ? std::vector<double>{otherwise} : values, at::kDouble)
        .to(at::kFloat)
        .to(device);
  }

  torch::Tensor mean_, scale_;  // float32 [1] or [T]
};

}  // namespace stoker::engine
