// SPDX-License-Identifier: Apache-2.0
#include "model/image_model.h"

#include <c10/core/MemoryFormat.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"

namespace stoker::model {

torch::Tensor ImageModel::features(torch::Tensor) {
  throw core::Error(core::ErrorKind::config, "this network has no feature map, which the network around it requires",
                    "choose a convolutional network, such as efficientnet_b0");
}

void ImageModel::train(bool on) {
  torch::nn::Module::train(on);
  for (const auto& part : still_) part->eval();
}

int64_t ImageModel::layer_of(const std::string& parameter) const {
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    for (const std::string& prefix : layers_[layer]) {
      if (parameter.compare(0, prefix.size(), prefix) == 0) return static_cast<int64_t>(layer);
    }
  }
  throw core::Error(core::ErrorKind::bug, core::format("parameter '{}' belongs to no layer", parameter));
}

bool ImageModel::is_in_backbone(const std::string& parameter) const {
  if (layers_.empty()) return parameter.rfind(head_prefix(), 0) != 0;  // of a file, whose layers are not known
  return layer_of(parameter) < layer_count() - layers_of_head_;
}

bool ImageModel::decays(const std::string& parameter) const {
  const std::vector<std::string> spared = no_weight_decay();
  return std::none_of(spared.begin(), spared.end(), [&](const std::string& part) {
    return ("." + parameter + ".").find("." + part + ".") != std::string::npos;
  });
}

std::vector<NamedTensor> state_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> state;
  for (const auto& item : module.named_parameters()) state.push_back({item.key(), item.value()});
  for (const auto& item : module.named_buffers()) state.push_back({item.key(), item.value()});
  return state;
}

int64_t parameter_count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

void to_channels_last(torch::nn::Module& module) {
  for (torch::Tensor& parameter : module.parameters()) {
    if (parameter.dim() != 4) continue;
    torch::Tensor weight = parameter.detach().contiguous(c10::MemoryFormat::ChannelsLast);
    // One input channel lies the same way in either order, but only strides for channels-last make the convolution
    // answer in it.
    if (weight.size(1) == 1) {
      const int64_t height = weight.size(2), width = weight.size(3);
      weight = weight.as_strided(weight.sizes(), {height * width, 1, width, 1});
    }
    parameter.set_data(weight);
  }
}

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
