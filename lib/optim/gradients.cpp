// SPDX-License-Identifier: Apache-2.0
// Clipping of all gradients together, with the norm and the factor left on the device.
#include "optim/gradients.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>

#include "optim/torch_kernels.h"

namespace stoker::optim {
namespace {

/// As torch.nn.utils.clip_grad_norm_, which adds this to the norm before dividing.
constexpr double kNormFloor = 1e-6;

/// limit / norm, and no more than 1.
torch::Tensor factor_for(const torch::Tensor& norm, double limit) { return (limit / (norm + kNormFloor)).clamp_max(1); }

torch::Tensor clip_by_norm(const std::vector<torch::Tensor>& gradients, double limit) {
  const torch::Tensor norm = torch::stack(at::_foreach_norm(gradients, 2)).norm();
  multiply_all(gradients, factor_for(norm, limit));
  return norm;
}

}  // namespace

torch::Tensor clip_gradients(const std::vector<torch::Tensor>& gradients, double limit, config::ClipMode mode) {
  if (gradients.empty()) return {};
  torch::NoGradGuard no_grad;
  if (mode == config::ClipMode::norm) return clip_by_norm(gradients, limit);
  clamp_all(gradients, limit);
  return {};
}

void multiply_gradients(const std::vector<torch::Tensor>& gradients, double factor) {
  if (gradients.empty()) return;
  torch::NoGradGuard no_grad;
  at::_foreach_mul_(gradients, factor);
}

}  // namespace stoker::optim
