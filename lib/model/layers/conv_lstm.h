// SPDX-License-Identifier: Apache-2.0
// Convolutional LSTM: Shi et al., "Convolutional LSTM Network", 2015, equations 3 without the peephole terms.
#pragma once

#include <torch/nn/modules/conv.h>

namespace stoker::model {

/// A memory of maps over time. With * a convolution that keeps the size, per step t:
///   i, f, g, o = input * x_t + hidden * h_(t-1)     four times `hidden_channels` channels, in this order
///   c_t = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g);  h_t = sigmoid(o) tanh(c_t);  h_0 = c_0 = 0
/// The forget gates start with a bias of 1 (Jozefowicz et al. 2015).
class ConvLstm : public torch::nn::Module {
 public:
  ConvLstm(int64_t in_channels, int64_t hidden_channels, int64_t kernel);

  /// x [B, T, in, H, W] -> h of every step [B, T, hidden, H, W], float32.
  torch::Tensor forward(const torch::Tensor& x);

 private:
  int64_t hidden_channels_;
  torch::nn::Conv2d input_{nullptr}, hidden_{nullptr};
};

}  // namespace stoker::model
