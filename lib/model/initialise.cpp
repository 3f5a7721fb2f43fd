// SPDX-License-Identifier: Apache-2.0
#include "model/initialise.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>

#include <cmath>

namespace stoker::model {

void truncated_normal(torch::Tensor tensor, double std) {
  const torch::NoGradGuard no_grad;
  const auto normal_cdf = [](double x) { return (1 + std::erf(x / std::sqrt(2.0))) / 2; };
  const double low = normal_cdf(-2 / std), high = normal_cdf(2 / std);
  tensor.uniform_(2 * low - 1, 2 * high - 1).erfinv_().mul_(std * std::sqrt(2.0)).clamp_(-2, 2);
}

void he_normal_convolutions(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (const auto& part : module.modules(/*include_self=*/false)) {
    auto* conv = part->as<torch::nn::Conv2d>();
    if (conv == nullptr) continue;
    torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    if (conv->bias.defined()) conv->bias.zero_();
  }
}

}  // namespace stoker::model
