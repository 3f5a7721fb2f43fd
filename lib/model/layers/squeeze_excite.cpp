// SPDX-License-Identifier: Apache-2.0
#include "model/layers/squeeze_excite.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/hardsigmoid.h>

namespace stoker::model {

SqueezeExcite::SqueezeExcite(int64_t channels, int64_t squeezed, Activation inner, Gate gate)
    : inner_(inner), gate_(gate) {
  fc1_ = register_module("fc1", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, squeezed, 1)));
  fc2_ = register_module("fc2", torch::nn::Conv2d(torch::nn::Conv2dOptions(squeezed, channels, 1)));
}

torch::Tensor SqueezeExcite::forward(const torch::Tensor& x) {
  torch::Tensor scale = at::adaptive_avg_pool2d(x, {1, 1});  // [B, C, 1, 1]
  scale = fc2_(activate(fc1_(scale), inner_));
  return x * (gate_ == Gate::sigmoid ? scale.sigmoid() : at::hardsigmoid(scale));
}

}  // namespace stoker::model
