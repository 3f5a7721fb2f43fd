// SPDX-License-Identifier: Apache-2.0
#include "model/layers/conv_norm_act.h"

#include <ATen/ops/hardswish.h>
#include <ATen/ops/silu.h>

namespace stoker::model {

torch::Tensor activate(torch::Tensor x, Activation activation) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x.relu_();
    case Activation::silu: return at::silu(x);  // not in place: its gradient needs x, which would be copied first
    case Activation::hardswish: return at::hardswish(x);
  }
  return x;
}

ConvNormAct::ConvNormAct(const ConvShape& shape, const NormSettings& norm, Activation activation)
    : activation_(activation) {
  conv_ = register_module("0", torch::nn::Conv2d(torch::nn::Conv2dOptions(shape.in, shape.out, shape.kernel)
                                                     .stride(shape.stride)
                                                     .padding((shape.kernel - 1) / 2)
                                                     .groups(shape.groups)
                                                     .bias(false)));
  norm_ = register_module(
      "1", torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(shape.out).eps(norm.eps).momentum(norm.momentum)));
}

}  // namespace stoker::model
