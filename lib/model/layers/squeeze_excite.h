// SPDX-License-Identifier: Apache-2.0
// Squeeze and excitation: Hu, Shen, Sun, "Squeeze-and-Excitation Networks", 2018, equations 2 to 4.
#pragma once

#include "model/layers/conv_norm_act.h"

namespace stoker::model {

/// x [B, C, H, W] -> x * gate(fc2(inner(fc1(mean of x over H and W)))), the same shape.
class SqueezeExcite : public torch::nn::Module {
 public:
  enum class Gate { sigmoid, hardsigmoid };

  SqueezeExcite(int64_t channels, int64_t squeezed, Activation inner, Gate gate);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::nn::Conv2d fc1_{nullptr}, fc2_{nullptr};
  Activation inner_;
  Gate gate_;
};

}  // namespace stoker::model
