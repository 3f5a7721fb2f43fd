// SPDX-License-Identifier: Apache-2.0
#include "model/layers/drop_path.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "model/layers/random_source.h"

namespace stoker::model {

torch::Tensor drop_path(const torch::Tensor& x, double rate, bool training) {
  if (!training || rate == 0) return x;
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  torch::Tensor kept = at::empty(shape, x.options());
  const at::Generator& source = random_source();
  source.defined() ? kept.bernoulli_(1 - rate, source) : kept.bernoulli_(1 - rate);
  return x * kept.div_(1 - rate);
}

torch::Tensor drop_out(const torch::Tensor& x, double rate, bool training) {
  if (!training || rate == 0) return x;
  const at::Generator& source = random_source();
  if (!source.defined()) return at::dropout(x, rate, /*train=*/true);
  return x * at::empty_like(x).bernoulli_(1 - rate, source).div_(1 - rate);  // the same, where no kernel fuses it
}

}  // namespace stoker::model
