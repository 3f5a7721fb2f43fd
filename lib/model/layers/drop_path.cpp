// SPDX-License-Identifier: Apache-2.0
#include "model/layers/drop_path.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>

namespace stoker::model {

torch::Tensor drop_path(const torch::Tensor& x, double rate, bool training) {
  if (!training || rate == 0) return x;
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  return x * at::empty(shape, x.options()).bernoulli_(1 - rate).div_(1 - rate);
}

torch::Tensor drop_out(const torch::Tensor& x, double rate, bool training) {
  return training && rate > 0 ? at::dropout(x, rate, /*train=*/true) : x;
}

}  // namespace stoker::model
