// SPDX-License-Identifier: Apache-2.0
// Plain loops over float arrays, written so that the compiler turns them into vector code. On a CPU these are
// bound by memory, so one pass beats a chain of tensor operations. Each value depends on its own inputs only:
// results do not depend on the number of threads.
#include "optim/one_pass.h"

#include <ATen/Parallel.h>

#include <cmath>

namespace stoker::optim {
namespace {

constexpr int64_t kValuesPerThread = 32768;

template <typename Body>
void for_each_range(int64_t count, const Body& body) {
  at::parallel_for(0, count, kValuesPerThread, body);
}

/// Scalars of SgdRule in the precision of the values.
struct SgdScalars {
  float lr, momentum, weight_decay;
};

void plain_sgd(float* __restrict p, const float* __restrict g, const SgdScalars& k, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) p[i] -= k.lr * (g[i] + k.weight_decay * p[i]);
}

template <bool nesterov>
void momentum_sgd(float* __restrict p, const float* __restrict g, float* __restrict m, const SgdScalars& k,
                  int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float slope = g[i] + k.weight_decay * p[i];
    const float velocity = k.momentum * m[i] + slope;
    m[i] = velocity;
    p[i] -= k.lr * (nesterov ? slope + k.momentum * velocity : velocity);
  }
}

struct AdamScalars {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, eps;
  float step_size;        ///< lr / (1 - beta1^t)
  float root_correction;  ///< sqrt(1 - beta2^t)
  float coupled_decay;    ///< weight decay added to the gradient
  float keep;             ///< 1 - lr * weight_decay when decoupled
};

AdamScalars adam_scalars(const AdamRule& rule, int64_t step) {
  const double correction1 = 1 - std::pow(rule.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(rule.beta2, static_cast<double>(step));
  AdamScalars k{};
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

void adam(float* __restrict p, const float* __restrict g, float* __restrict m, float* __restrict v,
          const AdamScalars& k, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float slope = g[i] + k.coupled_decay * p[i];
    m[i] = k.beta1 * m[i] + k.one_minus_beta1 * slope;
    v[i] = k.beta2 * v[i] + k.one_minus_beta2 * slope * slope;
    p[i] = k.keep * p[i] - k.step_size * m[i] / (std::sqrt(v[i]) / k.root_correction + k.eps);
  }
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
  if (same_layout(like, tensor)) return tensor;
  torch::Tensor copy = torch::empty_like(like);
  copy.copy_(tensor);
  return copy;
}

void one_pass_sgd(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& momentum,
                  const SgdRule& rule) {
  const SgdScalars k{static_cast<float>(rule.lr), static_cast<float>(rule.momentum),
                     static_cast<float>(rule.weight_decay)};
  auto* p = parameter.data_ptr<float>();
  const auto* g = gradient.data_ptr<float>();
  if (rule.momentum == 0) {
    for_each_range(parameter.numel(), [=](int64_t begin, int64_t end) { plain_sgd(p, g, k, begin, end); });
    return;
  }
  auto* m = momentum.data_ptr<float>();
  for_each_range(parameter.numel(), [=, nesterov = rule.nesterov](int64_t begin, int64_t end) {
    nesterov ? momentum_sgd<true>(p, g, m, k, begin, end) : momentum_sgd<false>(p, g, m, k, begin, end);
  });
}

void one_pass_adam(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& exp_avg,
                   const torch::Tensor& exp_avg_sq, const AdamRule& rule, int64_t step) {
  const AdamScalars k = adam_scalars(rule, step);
  auto* p = parameter.data_ptr<float>();
  const auto* g = gradient.data_ptr<float>();
  auto* m = exp_avg.data_ptr<float>();
  auto* v = exp_avg_sq.data_ptr<float>();
  for_each_range(parameter.numel(), [=](int64_t begin, int64_t end) { adam(p, g, m, v, k, begin, end); });
}

}  // namespace stoker::optim
