// SPDX-License-Identifier: Apache-2.0
#include "engine/task/heat_map.h"

#include <torch/nn/module.h>
#include <torch/torch.h>

#include <cmath>

#include "engine/device/without_onednn.h"

namespace stoker::engine {

torch::Tensor heat_of(model::ImageModel& model, const torch::Tensor& images) {
  const WithoutOnednn unproven;
  // The last map [n, C, h, w], or [n, h, w, C] of a Swin, or tokens [n, 1 + h * w, C] before the last block.
  torch::Tensor map;
  const at::AutoGradMode with_gradients(true);
  model.set_stage_runner([&map](torch::nn::Module&, const model::StageForward& forward, const torch::Tensor& input) {
    const torch::Tensor output = forward(input);
    map = output.dim() == 3 ? input : output;
    return output;
  });
  const torch::Tensor outputs = model.forward(images.clone().requires_grad_(true));  // [n, outputs]
  model.set_stage_runner({});
  if (!map.defined()) return {};
  // The sign of a single logit decides which of two classes it speaks for.
  const torch::Tensor best = outputs.size(1) == 1 ? outputs.abs() : std::get<0>(outputs.max(1));
  torch::Tensor gradient = torch::autograd::grad({best.sum()}, {map})[0];
  const torch::NoGradGuard no_gradients;
  torch::Tensor values = map.detach();
  if (values.dim() == 3) {
    const int64_t side = std::llround(std::sqrt(static_cast<double>(values.size(1) - 1)));
    const auto as_map = [&](const torch::Tensor& tokens) {
      return tokens.slice(1, tokens.size(1) - side * side).transpose(1, 2).unflatten(2, {side, side});
    };
    values = as_map(values);
    gradient = as_map(gradient);
  }
  const int64_t channels = model.feature_channels();
  if (map.dim() == 4 && channels > 0 && map.size(1) != channels && map.size(3) == channels) {
    values = values.permute({0, 3, 1, 2});
    gradient = gradient.permute({0, 3, 1, 2});
  }
  const torch::Tensor heat = (gradient.relu() * values).sum(1, /*keepdim=*/true).relu();
  const torch::Tensor large =
      at::upsample_bilinear2d(heat, {images.size(2), images.size(3)}, /*align_corners=*/false).squeeze(1);
  return (large / large.amax({1, 2}, /*keepdim=*/true).clamp_min(1e-12)).cpu();
}

torch::Tensor under_heat(const torch::Tensor& images, const torch::Tensor& heat) {
  const torch::NoGradGuard no_gradients;
  torch::Tensor shown = images.cpu();
  if (shown.size(1) != 3) shown = shown.slice(1, 0, 1).expand({-1, 3, -1, -1});
  const torch::Tensor colours =
      torch::stack({(heat * 2 - 0.5).clamp(0, 1), 1 - (heat * 2 - 1).abs(), (1.5 - heat * 2).clamp(0, 1)}, 1);
  const torch::Tensor weight = (0.6 * heat).unsqueeze(1);  // what is cold stays as it is
  return ((shown.clamp(0, 1) * (1 - weight) + colours * weight) * 255)
      .round()
      .to(at::kByte)
      .permute({0, 2, 3, 1})
      .contiguous();
}

}  // namespace stoker::engine
