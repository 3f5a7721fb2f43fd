// SPDX-License-Identifier: Apache-2.0
// Calls of fused and foreach kernels, chosen by LibTorch release.
#include "optim/torch_kernels.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/_fused_adam.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/error.h"

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
#define STOKER_FUSED_SGD_AND_ADAMW 1
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#else
#define STOKER_FUSED_SGD_AND_ADAMW 0
#endif

namespace stoker::optim {
namespace {

using TensorVector = std::vector<torch::Tensor>;

std::atomic<int> scopes_for_devices{0};

void fused_coupled_adam(const KernelLists& lists, const AdamRule& rule, double weight_decay, const TensorVector& steps,
                        const torch::Tensor& found_inf) {
  if (found_inf.defined()) {
    at::_fused_adam_(lists.parameters, lists.gradients, lists.first, lists.second, {}, steps, rule.lr, rule.beta1,
                     rule.beta2, weight_decay, rule.eps, /*amsgrad=*/false, /*maximize=*/false,
                     /*grad_scale=*/{}, found_inf);
  } else {
    at::_fused_adam_(lists.parameters, lists.gradients, lists.first, lists.second, {}, steps, rule.lr, rule.beta1,
                     rule.beta2, weight_decay, rule.eps, /*amsgrad=*/false, /*maximize=*/false);
  }
}

#if STOKER_FUSED_SGD_AND_ADAMW

void fused_decoupled_adam(const KernelLists& lists, const AdamRule& rule, const TensorVector& steps,
                          const torch::Tensor& found_inf) {
  if (found_inf.defined()) {
    at::_fused_adamw_(lists.parameters, lists.gradients, lists.first, lists.second, {}, steps, rule.lr, rule.beta1,
                      rule.beta2, rule.weight_decay, rule.eps, /*amsgrad=*/false,
                      /*maximize=*/false,
                      /*grad_scale=*/{}, found_inf);
  } else {
    at::_fused_adamw_(lists.parameters, lists.gradients, lists.first, lists.second, {}, steps, rule.lr, rule.beta1,
                      rule.beta2, rule.weight_decay, rule.eps, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
}

#else

/// Shrinks the weights first, by nothing where found_inf is 1, and leaves the rest to the coupled kernel.
void fused_decoupled_adam(const KernelLists& lists, const AdamRule& rule, const TensorVector& steps,
                          const torch::Tensor& found_inf) {
  const double decay = rule.lr * rule.weight_decay;
  if (decay != 0 && found_inf.defined()) {
    multiply_all(lists.parameters, 1 - decay * (1 - found_inf));
  } else if (decay != 0) {
    at::_foreach_mul_(lists.parameters, 1 - decay);
  }
  fused_coupled_adam(lists, rule, /*weight_decay=*/0, steps, found_inf);
}

#endif

template <typename Share>
void approach_on_cpu(const TensorVector& averages, const TensorVector& values, const Share& share) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < averages.size(); ++i) averages[i].lerp_(values[i], share);
}

}  // namespace

bool has_fused_sgd() { return STOKER_FUSED_SGD_AND_ADAMW != 0; }

void fused_sgd(const KernelLists& lists, const SgdRule& rule, const torch::Tensor& found_inf) {
#if STOKER_FUSED_SGD_AND_ADAMW
  if (found_inf.defined()) {
    at::_fused_sgd_(lists.parameters, lists.gradients, lists.first, rule.weight_decay, rule.momentum, rule.lr,
                    /*dampening=*/0, rule.nesterov, /*maximize=*/false, /*is_first_step=*/false,
                    /*grad_scale=*/{}, found_inf);
  } else {
    at::_fused_sgd_(lists.parameters, lists.gradients, lists.first, rule.weight_decay, rule.momentum, rule.lr,
                    /*dampening=*/0, rule.nesterov, /*maximize=*/false, /*is_first_step=*/false);
  }
#else
  (void)lists, (void)rule, (void)found_inf;
  throw core::Error(core::ErrorKind::bug, "this LibTorch has no fused SGD");
#endif
}

void fused_adam(const KernelLists& lists, const AdamRule& rule, const torch::Tensor& step,
                const torch::Tensor& found_inf) {
  const TensorVector steps(lists.parameters.size(), step);  // only read: all may be the same tensor
  if (rule.decoupled) {
    fused_decoupled_adam(lists, rule, steps, found_inf);
  } else {
    fused_coupled_adam(lists, rule, rule.weight_decay, steps, found_inf);
  }
}

void foreach_sgd(const KernelLists& lists, const SgdRule& rule) {
  if (rule.weight_decay != 0) at::_foreach_add_(lists.gradients, lists.parameters, rule.weight_decay);
  if (rule.momentum == 0) {
    at::_foreach_add_(lists.parameters, lists.gradients, -rule.lr);
    return;
  }
  at::_foreach_mul_(lists.first, rule.momentum);
  at::_foreach_add_(lists.first, lists.gradients, 1);
  if (rule.nesterov) {
    at::_foreach_add_(lists.gradients, lists.first, rule.momentum);
    at::_foreach_add_(lists.parameters, lists.gradients, -rule.lr);
  } else {
    at::_foreach_add_(lists.parameters, lists.first, -rule.lr);
  }
}

void foreach_adam(const KernelLists& lists, const AdamRule& rule, int64_t step) {
  const double correction1 = 1 - std::pow(rule.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(rule.beta2, static_cast<double>(step));
  if (rule.decoupled) {
    at::_foreach_mul_(lists.parameters, 1 - rule.lr * rule.weight_decay);
  } else if (rule.weight_decay != 0) {
    at::_foreach_add_(lists.gradients, lists.parameters, rule.weight_decay);
  }
  at::_foreach_mul_(lists.first, rule.beta1);
  at::_foreach_add_(lists.first, lists.gradients, 1 - rule.beta1);
  at::_foreach_mul_(lists.second, rule.beta2);
  at::_foreach_addcmul_(lists.second, lists.gradients, lists.gradients, 1 - rule.beta2);
  const TensorVector denominators = at::_foreach_sqrt(lists.second);
  at::_foreach_div_(denominators, std::sqrt(correction2));
  at::_foreach_add_(denominators, rule.eps);
  at::_foreach_addcdiv_(lists.parameters, lists.first, denominators, -rule.lr / correction1);
}

namespace {

/// Both averages of Adam after a gradient.
void move_averages(const KernelLists& lists, const AdamRule& rule) {
  at::_foreach_mul_(lists.first, rule.beta1);
  at::_foreach_add_(lists.first, lists.gradients, 1 - rule.beta1);
  at::_foreach_mul_(lists.second, rule.beta2);
  at::_foreach_addcmul_(lists.second, lists.gradients, lists.gradients, 1 - rule.beta2);
}

/// sqrt(second / correction) + eps
TensorVector denominators_of(const KernelLists& lists, const AdamRule& rule, int64_t step) {
  TensorVector denominators = at::_foreach_sqrt(lists.second);
  at::_foreach_div_(denominators, std::sqrt(1 - std::pow(rule.beta2, static_cast<double>(step))));
  at::_foreach_add_(denominators, rule.eps);
  return denominators;
}

/// The matrix with the singular vectors of `matrix`, whose singular values are near 1.
torch::Tensor orthogonalised(const torch::Tensor& matrix) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  constexpr int kSteps = 5;
  const bool is_tall = matrix.size(0) > matrix.size(1);
  torch::Tensor x = is_tall ? matrix.t() : matrix;
  x = x / x.norm().clamp_min(1e-7);
  for (int i = 0; i < kSteps; ++i) {
    const torch::Tensor square = x.mm(x.t());
    x = kA * x + (kB * square + kC * square.mm(square)).mm(x);
  }
  return is_tall ? x.t() : x;
}

}  // namespace

void foreach_rmsprop(const KernelLists& lists, const RmsPropRule& rule) {
  if (rule.weight_decay != 0) at::_foreach_add_(lists.gradients, lists.parameters, rule.weight_decay);
  at::_foreach_mul_(lists.second, rule.alpha);
  at::_foreach_addcmul_(lists.second, lists.gradients, lists.gradients, 1 - rule.alpha);
  const TensorVector denominators = at::_foreach_sqrt(lists.second);
  at::_foreach_add_(denominators, rule.eps);
  if (rule.momentum == 0) return at::_foreach_addcdiv_(lists.parameters, lists.gradients, denominators, -rule.lr);
  at::_foreach_mul_(lists.first, rule.momentum);
  at::_foreach_addcdiv_(lists.first, lists.gradients, denominators, 1);
  at::_foreach_add_(lists.parameters, lists.first, -rule.lr);
}

void foreach_nadam(const KernelLists& lists, const AdamRule& rule, int64_t step) {
  constexpr double kMomentumDecay = 0.004, kNothing = 1e-40;
  const auto momentum_at = [&rule](int64_t t) {
    return rule.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * kMomentumDecay));
  };
  double product = 1;
  for (int64_t t = 1; t <= step && product > kNothing; ++t) product *= momentum_at(t);
  const double now = momentum_at(step), next = momentum_at(step + 1);
  if (rule.weight_decay != 0) at::_foreach_add_(lists.gradients, lists.parameters, rule.weight_decay);
  move_averages(lists, rule);
  const TensorVector denominators = denominators_of(lists, rule, step);
  at::_foreach_addcdiv_(lists.parameters, lists.gradients, denominators, -rule.lr * (1 - now) / (1 - product));
  at::_foreach_addcdiv_(lists.parameters, lists.first, denominators, -rule.lr * next / (1 - product * next));
}

void foreach_lion(const KernelLists& lists, const AdamRule& rule) {
  if (rule.weight_decay != 0) at::_foreach_mul_(lists.parameters, 1 - rule.lr * rule.weight_decay);
  const TensorVector steps = at::_foreach_mul(lists.first, rule.beta1);
  at::_foreach_add_(steps, lists.gradients, 1 - rule.beta1);
  for (const torch::Tensor& step : steps) step.sign_();
  at::_foreach_add_(lists.parameters, steps, -rule.lr);
  at::_foreach_mul_(lists.first, rule.beta2);
  at::_foreach_add_(lists.first, lists.gradients, 1 - rule.beta2);
}

void foreach_lamb(const KernelLists& lists, const AdamRule& rule, int64_t step, bool adapts) {
  move_averages(lists, rule);
  const TensorVector steps = at::_foreach_div(lists.first, denominators_of(lists, rule, step));
  at::_foreach_div_(steps, 1 - std::pow(rule.beta1, static_cast<double>(step)));
  if (rule.weight_decay != 0) at::_foreach_add_(steps, lists.parameters, rule.weight_decay);
  for (size_t i = 0; adapts && i < steps.size(); ++i) {
    const torch::Tensor weight = lists.parameters[i].norm(), length = steps[i].norm();
    steps[i].mul_(torch::where(weight.gt(0).logical_and(length.gt(0)), weight / length, torch::ones_like(weight)));
  }
  at::_foreach_add_(lists.parameters, steps, -rule.lr);
}

void foreach_muon(const KernelLists& lists, const SgdRule& rule) {
  for (size_t i = 0; i < lists.parameters.size(); ++i) {
    const torch::Tensor &parameter = lists.parameters[i], &momentum = lists.first[i];
    momentum.lerp_(lists.gradients[i], 1 - rule.momentum);
    const torch::Tensor moved = rule.nesterov ? lists.gradients[i].lerp(momentum, rule.momentum) : momentum;
    const torch::Tensor step = orthogonalised(moved.flatten(1));
    const double size = 0.2 * std::sqrt(static_cast<double>(std::max(step.size(0), step.size(1))));
    if (rule.weight_decay != 0) parameter.mul_(1 - rule.lr * rule.weight_decay);
    parameter.sub_(step.reshape(parameter.sizes()), rule.lr * size);
  }
}

void multiply_all(const TensorVector& tensors, const torch::Tensor& factor) {
  const torch::Tensor scalar = factor.reshape({});
#if STOKER_FUSED_SGD_AND_ADAMW
  at::_foreach_mul_(tensors, scalar);
#else
  for (const torch::Tensor& tensor : tensors) tensor.mul_(scalar);
#endif
}

DeviceKernelsScope::DeviceKernelsScope() { ++scopes_for_devices; }
DeviceKernelsScope::~DeviceKernelsScope() { --scopes_for_devices; }

bool takes_device_kernels(const torch::Tensor& tensor) { return !tensor.is_cpu() || scopes_for_devices > 0; }

void clamp_all(const TensorVector& tensors, double limit) {
#if STOKER_FUSED_SGD_AND_ADAMW
  at::_foreach_clamp_min_(tensors, -limit);
  at::_foreach_clamp_max_(tensors, limit);
#else
  for (const torch::Tensor& tensor : tensors) tensor.clamp_(-limit, limit);
#endif
}

void approach_all(const TensorVector& averages, const TensorVector& values, double share) {
  if (averages.empty()) return;
  if (!takes_device_kernels(averages[0])) return approach_on_cpu(averages, values, share);
  const TensorVector differences = at::_foreach_sub(values, averages);
  at::_foreach_add_(averages, differences, share);
}

void approach_all(const TensorVector& averages, const TensorVector& values, const torch::Tensor& share) {
  if (averages.empty()) return;
  const torch::Tensor scalar = share.reshape({});
  if (!takes_device_kernels(averages[0])) return approach_on_cpu(averages, values, scalar);
  const TensorVector differences = at::_foreach_sub(values, averages);
  multiply_all(differences, scalar);
  at::_foreach_add_(averages, differences, 1);
}

}  // namespace stoker::optim
