// SPDX-License-Identifier: Apache-2.0
// An exponential moving average of a model's weights (Polyak & Juditsky 1992; as timm's ModelEmaV2).
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <string>
#include <vector>

namespace stoker::optim {

/// Holds a float copy of every parameter and floating-point buffer by name; integer buffers are copied.
class Ema {
 public:
  Ema(const torch::nn::Module& model, double decay, bool warmup);

  /// average += (1 - d) * (weights - average), with d = min(decay, (1 + t) / (10 + t)) while warming up, t
  /// the updates so far. With `found_inf` (float32 [1], 0 or 1) at 1 nothing moves, though t counts on; no
  /// host sync.
  void update(const torch::nn::Module& model, const torch::Tensor& found_inf = {});
  /// Swaps the averages with the model's own values in place; call twice around an evaluation.
  void swap(torch::nn::Module& model);

  struct NamedAverage {
    std::string name;
    torch::Tensor tensor;
  };
  std::vector<NamedAverage>& averages() { return averages_; }
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

 private:
  std::vector<NamedAverage> averages_;
  double decay_;
  bool warmup_;
  int64_t updates_ = 0;
};

}  // namespace stoker::optim
