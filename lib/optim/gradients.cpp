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

/// Clips as above, each gradient by whichever member of the team is free.
torch::Tensor clip_by_norm(const std::vector<torch::Tensor>& gradients, double limit, core::ThreadTeam& team) {
  const auto count = static_cast<int64_t>(gradients.size());
  std::vector<torch::Tensor> norms(gradients.size());
  team.for_each(count, [&](int64_t number) {
    const torch::NoGradGuard no_grad;  // of this thread
    const auto i = static_cast<size_t>(number);
    norms[i] = at::_foreach_norm({gradients[i]}, 2)[0];
  });
  const torch::Tensor norm = torch::stack(norms).norm(), factor = factor_for(norm, limit);
  team.for_each(count, [&](int64_t i) {
    const torch::NoGradGuard no_grad;
    multiply_all({gradients[static_cast<size_t>(i)]}, factor);
  });
  return norm;
}

}  // namespace

torch::Tensor clip_gradients(const std::vector<torch::Tensor>& gradients, double limit, config::ClipMode mode,
                             core::ThreadTeam* team) {
  if (gradients.empty()) return {};
  torch::NoGradGuard no_grad;
  if (mode == config::ClipMode::norm) {
    return team ? clip_by_norm(gradients, limit, *team) : clip_by_norm(gradients, limit);
  }
  clamp_all(gradients, limit);
  return {};
}

void multiply_gradients(const std::vector<torch::Tensor>& gradients, double factor) {
  if (gradients.empty()) return;
  torch::NoGradGuard no_grad;
  at::_foreach_mul_(gradients, factor);
}

}  // namespace stoker::optim
