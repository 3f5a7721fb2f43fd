// SPDX-License-Identifier: Apache-2.0
// A convolution as the networks call it. In bfloat16 training on a CPU, the gradient of its weights goes through
// kernels/conv_weight_gradient where that is faster than LibTorch; everything else is LibTorch's.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/types.h>

#include "model/layers/batch_norm.h"

namespace stoker::model {

/// conv(x), x [B, C, H, W].
torch::Tensor convolve(torch::nn::Conv2d& conv, const torch::Tensor& x);

/// A convolution without bias, as one before a norm is; padded so that stride 1 keeps an odd kernel's size.
torch::nn::Conv2d unbiased_conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1);

// Convolution, batch norm and activation as one layer, named as torchvision's Conv2dNormActivation: what
// mobile networks are built of.

enum class Activation { none, relu, relu6, silu, hardswish };

/// x -> activation(x), any shape; relu and relu6 may work in place.
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
  torch::Tensor forward(const torch::Tensor& x);
  /// Pads from now on as TensorFlow does ("same"): where the stride is 2 and a side is even, a pixel less before it.
  void use_same_padding() { has_same_padding_ = true; }

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
  Activation activation_;
  bool has_same_padding_ = false;
};

// Squeeze and excitation: Hu, Shen, Sun, "Squeeze-and-Excitation Networks", 2018, equations 2 to 4.

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
