// SPDX-License-Identifier: Apache-2.0
// Cross entropy in float32. Labels are taken as they are: whoever reads the data has checked them.
#include "model/loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>

namespace stoker::model {

torch::Tensor cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& labels,
                                double label_smoothing) {
  // No label means "ignore": a class number can never be this one.
  constexpr int64_t kIgnoreNothing = -1;
  return at::cross_entropy_loss(logits.to(torch::kFloat32), labels, /*weight=*/{}, at::Reduction::Sum,
                                kIgnoreNothing, label_smoothing);
}

}  // namespace stoker::model
