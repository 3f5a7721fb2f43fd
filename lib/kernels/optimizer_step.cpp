// SPDX-License-Identifier: Apache-2.0
// Plain loops over float arrays, written so that the compiler turns them into vector code. Each value depends on its
// own inputs only: results do not depend on the number of threads.
#include "kernels/optimizer_step.h"

#include <cmath>

#include "kernels/cpu.h"

namespace stoker::kernels {
namespace {

constexpr int64_t kValuesPerThread = 32768;

void plain_sgd(float* __restrict p, const float* __restrict g, const SgdStep& k, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) p[i] -= k.lr * (g[i] + k.weight_decay * p[i]);
}

template <bool nesterov>
void momentum_sgd(float* __restrict p, const float* __restrict g, float* __restrict m, const SgdStep& k, int64_t begin,
                  int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = g[i] + k.weight_decay * p[i];
    const float velocity = k.momentum * m[i] + gradient;
    m[i] = velocity;
    p[i] -= k.lr * (nesterov ? gradient + k.momentum * velocity : velocity);
  }
}

void adam(float* __restrict p, const float* __restrict g, float* __restrict m, float* __restrict v, const AdamStep& k,
          int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = g[i] + k.coupled_decay * p[i];
    m[i] = k.beta1 * m[i] + k.one_minus_beta1 * gradient;
    v[i] = k.beta2 * v[i] + k.one_minus_beta2 * gradient * gradient;
    p[i] = k.keep * p[i] - k.step_size * m[i] / (std::sqrt(v[i]) / k.root_correction + k.eps);
  }
}

}  // namespace

bool has_optimizer_step() { return true; }

void sgd_step(float* p, const float* g, float* m, int64_t count, const SgdStep& step, ParallelFor parallel_for) {
  parallel_for(count, kValuesPerThread, [=](int64_t begin, int64_t end) {
    if (step.momentum == 0) return plain_sgd(p, g, step, begin, end);
    step.nesterov ? momentum_sgd<true>(p, g, m, step, begin, end) : momentum_sgd<false>(p, g, m, step, begin, end);
  });
}

void adam_step(float* p, const float* g, float* m, float* v, int64_t count, const AdamStep& step,
               ParallelFor parallel_for) {
  parallel_for(count, kValuesPerThread, [=](int64_t begin, int64_t end) { adam(p, g, m, v, step, begin, end); });
}

}  // namespace stoker::kernels
