// SPDX-License-Identifier: Apache-2.0
// Turns tensors and rules into what kernels/optimizer_step takes.
#include "optim/one_pass.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "kernels/optimizer_step.h"

namespace stoker::optim {
namespace {

void on_torch_threads(int64_t count, int64_t grain, const kernels::RangeWork& work) {
  at::parallel_for(0, count, grain, work);
}

kernels::AdamStep adam_step_of(const AdamRule& rule, int64_t step) {
  const double correction1 = 1 - std::pow(rule.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(rule.beta2, static_cast<double>(step));
  kernels::AdamStep k{};
  k.beta1 = static_cast<float>(rule.beta1);
  k.one_minus_beta1 = static_cast<float>(1 - rule.beta1);
  k.beta2 = static_cast<float>(rule.beta2);
  k.one_minus_beta2 = static_cast<float>(1 - rule.beta2);
  k.eps = static_cast<float>(rule.eps);
  k.step_size = static_cast<float>(rule.lr / correction1);
  k.root_correction = static_cast<float>(std::sqrt(correction2));
  k.coupled_decay = rule.decoupled ? 0.F : static_cast<float>(rule.weight_decay);
  k.keep = rule.decoupled ? static_cast<float>(1 - rule.lr * rule.weight_decay) : 1.F;
  return k;
}

}  // namespace

bool same_layout(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  for (int64_t dim = 0; dim < a.dim(); ++dim) {
    // The stride of a dimension of size 1 is never used; convolutions of size 1x1 leave any value there.
    if (a.size(dim) > 1 && a.stride(dim) != b.stride(dim)) return false;
  }
  return true;
}

torch::Tensor with_layout_of(const torch::Tensor& like, const torch::Tensor& tensor) {
  // Kernels of LibTorch before 2.5 compare every stride, also those that are never used.
  if (same_layout(like, tensor)) {
    return like.strides() == tensor.strides() ? tensor : tensor.as_strided(like.sizes(), like.strides());
  }
  torch::Tensor copy = torch::empty_like(like);
  copy.copy_(tensor);
  return copy;
}

void one_pass_sgd(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& momentum,
                  const SgdRule& rule) {
  const kernels::SgdStep step{static_cast<float>(rule.lr), static_cast<float>(rule.momentum),
                              static_cast<float>(rule.weight_decay), rule.nesterov};
  kernels::sgd_step(parameter.data_ptr<float>(), gradient.data_ptr<float>(),
                    rule.momentum == 0 ? nullptr : momentum.data_ptr<float>(), parameter.numel(), step,
                    on_torch_threads);
}

void one_pass_adam(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& exp_avg,
                   const torch::Tensor& exp_avg_sq, const AdamRule& rule, int64_t step) {
  kernels::adam_step(parameter.data_ptr<float>(), gradient.data_ptr<float>(), exp_avg.data_ptr<float>(),
                     exp_avg_sq.data_ptr<float>(), parameter.numel(), adam_step_of(rule, step), on_torch_threads);
}

}  // namespace stoker::optim
