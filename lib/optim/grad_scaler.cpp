// SPDX-License-Identifier: Apache-2.0
// On CUDA the kernels that torch.cuda.amp uses; elsewhere the same algorithm in ordinary tensor operations,
// since LibTorch before 2.4 has those kernels for CUDA only. Neither waits for the device.
#include "optim/grad_scaler.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>

#include <limits>

#include "optim/torch_kernels.h"

namespace stoker::optim {

GradScaler::GradScaler(const GradScalerSettings& settings, torch::Device device) : settings_(settings) {
  if (!settings_.enabled) return;
  const auto on_device = torch::TensorOptions(device);
  scale_ = torch::full({1}, settings_.init_scale, on_device.dtype(torch::kFloat32));
  growth_tracker_ = torch::zeros({1}, on_device.dtype(torch::kInt32));
  skipped_ = torch::zeros({1}, on_device.dtype(torch::kInt64));
  skipped_in_row_ = torch::zeros({1}, on_device.dtype(torch::kFloat32));
  found_inf_ = torch::zeros({1}, on_device.dtype(torch::kFloat32));
}

torch::Tensor GradScaler::scaled(const torch::Tensor& loss) const {
  return settings_.enabled ? loss * scale_.reshape({}) : loss;
}

torch::Tensor GradScaler::unscale(const std::vector<torch::Tensor>& gradients) {
  if (!settings_.enabled) return {};
  torch::NoGradGuard no_grad;
  found_inf_.zero_();
  if (gradients.empty()) return found_inf_;
  // In double, since the reciprocal of a float32 scale may be subnormal; as torch.cuda.amp does.
  const torch::Tensor inverse_scale = scale_.to(torch::kFloat64).reciprocal().to(torch::kFloat32);
  if (scale_.is_cuda()) {
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf_, inverse_scale);
    return found_inf_;
  }
  // The largest absolute value of all, which is inf or NaN when any value is, and cannot overflow itself.
  const double infinity = std::numeric_limits<double>::infinity();
  const torch::Tensor largest = torch::stack(at::_foreach_norm(gradients, infinity)).max();
  found_inf_.copy_(torch::isfinite(largest).logical_not());
  multiply_all(gradients, inverse_scale);
  return found_inf_;
}

void GradScaler::update() {
  if (!settings_.enabled) return;
  torch::NoGradGuard no_grad;
  skipped_.add_(found_inf_.to(torch::kInt64));
  skipped_in_row_.add_(1).mul_(found_inf_);
  if (scale_.is_cuda()) {
    at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, settings_.growth_factor, settings_.backoff_factor,
                           settings_.growth_interval);
    return;
  }
  const torch::Tensor bad = found_inf_ > 0;
  const torch::Tensor good_updates = growth_tracker_ + 1;
  const torch::Tensor due = good_updates == settings_.growth_interval;
  // Factors are double, as in torch's kernels: the product is rounded once.
  const torch::Tensor precise = scale_.to(torch::kFloat64);
  const torch::Tensor larger = (precise * settings_.growth_factor).to(torch::kFloat32);
  const torch::Tensor smaller = (precise * settings_.backoff_factor).to(torch::kFloat32);
  const torch::Tensor grown = torch::where(due.logical_and(torch::isfinite(larger)), larger, scale_);
  scale_.copy_(torch::where(bad, smaller, grown));
  growth_tracker_.copy_(good_updates.masked_fill(bad.logical_or(due), 0));
}

torch::Tensor GradScaler::figures() const {
  if (!settings_.enabled) return {};
  return torch::cat({scale_.to(torch::kFloat64), skipped_.to(torch::kFloat64), skipped_in_row_.to(torch::kFloat64)});
}

LossScale GradScaler::read(const double* figures) {
  return {figures[0], static_cast<int64_t>(figures[1]), static_cast<int64_t>(figures[2])};
}

// Clipping of all gradients together, with the norm and the factor left on the device.

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
