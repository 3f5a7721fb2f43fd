// SPDX-License-Identifier: Apache-2.0
// An exponential moving average of a model's weights (Polyak & Juditsky 1992; as timm's ModelEmaV2).
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <string>
#include <vector>

namespace stoker::optim {

/// Holds a float copy of every parameter and floating-point buffer by name. Counters (integer buffers) are not
/// averages: they are those of the model after its last update, taken when they are requested.
class Ema {
 public:
  /// The model's tensors are the same objects from here on; their values may change.
  Ema(const torch::nn::Module& model, double decay, bool warmup);

  /// average += (1 - d) * (weights - average), with d = min(decay, (1 + t) / (10 + t)) while warming up, t
  /// the updates so far. With `found_inf` (float32 [1], 0 or 1) at 1 no average moves, though t counts on; no
  /// host sync. The weights are those of the model that this was made of.
  void update(const torch::Tensor& found_inf = {});
  /// Swaps the averages with the model's own values in place; call twice around an evaluation.
  void swap();

  struct NamedAverage {
    std::string name;
    torch::Tensor tensor;
  };
  std::vector<NamedAverage>& averages() {
    take_counters();
    return averages_;
  }
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

 private:
  void take_counters();

  std::vector<NamedAverage> averages_;                  ///< views of what follows
  std::vector<torch::Tensor> floats_, float_averages_;  ///< the model's, and the averages of each
  std::vector<torch::Tensor> counters_, own_counters_;  ///< counters of the average, and the model's
  bool counters_are_behind_ = false;
  double decay_;
  bool warmup_;
  int64_t updates_ = 0;
};

/// For its lifetime the model of `ema` holds the averaged weights; null: its own.
class AveragedWeights {
 public:
  explicit AveragedWeights(Ema* ema) : ema_(ema) {
    if (ema_) ema_->swap();
  }
  ~AveragedWeights() {
    if (ema_) ema_->swap();
  }
  AveragedWeights& operator=(AveragedWeights&&) = delete;  // not copied, not moved

 private:
  Ema* ema_;
};

}  // namespace stoker::optim
