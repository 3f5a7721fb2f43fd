// SPDX-License-Identifier: Apache-2.0
#include "model/layers/conv_lstm.h"

#include <ATen/ops/stack.h>

namespace stoker::model {
namespace {

torch::nn::Conv2d same_size_conv(int64_t in, int64_t out, int64_t kernel, bool bias) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel).padding((kernel - 1) / 2).bias(bias));
}

}  // namespace

ConvLstm::ConvLstm(int64_t in_channels, int64_t hidden_channels, int64_t kernel) : hidden_channels_(hidden_channels) {
  input_ = register_module("input", same_size_conv(in_channels, 4 * hidden_channels, kernel, /*bias=*/true));
  hidden_ = register_module("hidden", same_size_conv(hidden_channels, 4 * hidden_channels, kernel, /*bias=*/false));
  const torch::NoGradGuard no_grad;
  input_->bias.zero_();
  input_->bias.slice(0, hidden_channels, 2 * hidden_channels).fill_(1);
}

torch::Tensor ConvLstm::forward(const torch::Tensor& x) {
  const int64_t steps = x.size(1);
  const torch::Tensor from_input =
      input_(x.flatten(0, 1))
          .reshape({-1, steps, 4 * hidden_channels_, x.size(3), x.size(4)});  // [B, T, 4 hidden, H, W]
  std::vector<torch::Tensor> states;                                          // T x [B, hidden, H, W]
  torch::Tensor cell;                                                         // [B, hidden, H, W]
  for (int64_t step = 0; step < steps; ++step) {
    torch::Tensor gates = from_input.select(1, step);
    if (step > 0) gates = gates + hidden_(states.back());
    const std::vector<torch::Tensor> parts = gates.to(torch::kFloat32).chunk(4, /*dim=*/1);
    const torch::Tensor added = parts[0].sigmoid() * parts[2].tanh();
    cell = step > 0 ? parts[1].sigmoid() * cell + added : added;
    states.push_back(parts[3].sigmoid() * cell.tanh());
  }
  return at::stack(states, 1);
}

}  // namespace stoker::model
