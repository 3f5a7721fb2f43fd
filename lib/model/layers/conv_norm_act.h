// SPDX-License-Identifier: Apache-2.0
// Convolution, batch norm and activation as one layer, named as torchvision's Conv2dNormActivation: what
// mobile networks are built of.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include "model/layers/conv.h"

namespace stoker::model {

enum class Activation { none, relu, silu, hardswish };

/// x -> activation(x), any shape; relu may work in place.
torch::Tensor activate(torch::Tensor x, Activation activation);

struct ConvShape {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;  ///< odd; padded so that stride 1 keeps the size
  int64_t stride = 1;
  int64_t groups = 1;
};

struct NormSettings {
  double eps = 1e-5;
  double momentum = 0.1;  ///< share of the newest batch in the running statistics
};

/// x [B, in, H, W] -> [B, out, ceil(H / stride), ceil(W / stride)]. Children "0" (convolution without bias)
/// and "1" (batch norm).
class ConvNormAct : public torch::nn::Module {
 public:
  ConvNormAct(const ConvShape& shape, const NormSettings& norm, Activation activation);
  torch::Tensor forward(const torch::Tensor& x) { return activate(norm_(convolve(conv_, x)), activation_); }

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
  Activation activation_;
};

}  // namespace stoker::model
