// SPDX-License-Identifier: Apache-2.0
#include "model/layers/attention.h"

#include <torch/version.h>

#include <cmath>

#if TORCH_VERSION_MAJOR >= 2
#include <ATen/ops/scaled_dot_product_attention.h>
#else
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#endif

namespace stoker::model {

torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(q, k, v);
#else
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  return at::matmul(at::softmax(at::matmul(q * scale, k.transpose(-2, -1)), -1), v);
#endif
}

}  // namespace stoker::model
