// SPDX-License-Identifier: Apache-2.0
// Losses in float32. Labels are taken as they are: whoever reads the data has checked them.
#include "model/loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/zeros_like.h>

namespace stoker::model {

torch::Tensor cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& labels, double label_smoothing,
                                const torch::Tensor& class_weights) {
  // No label means "ignore": a class number can never be this one.
  constexpr int64_t kIgnoreNothing = -1;
  return at::cross_entropy_loss(logits.to(torch::kFloat32), labels, class_weights, at::Reduction::Sum, kIgnoreNothing,
                                label_smoothing);
}

torch::Tensor binary_cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& targets,
                                       const torch::Tensor& pos_weight, double label_smoothing) {
  torch::Tensor wanted = targets;
  if (label_smoothing > 0) wanted = targets * (1 - label_smoothing) + label_smoothing / 2;
  return at::binary_cross_entropy_with_logits(logits.to(torch::kFloat32), wanted, /*weight=*/{}, pos_weight,
                                              at::Reduction::Sum);
}

torch::Tensor regression_loss_sum(const torch::Tensor& differences, config::RegressionLoss loss) {
  switch (loss) {
    case config::RegressionLoss::l1: return differences.abs().sum();
    case config::RegressionLoss::l2: return differences.square().sum();
    case config::RegressionLoss::smooth_l1: break;
  }
  return at::smooth_l1_loss(differences, at::zeros_like(differences), at::Reduction::Sum, /*beta=*/1.0);
}

}  // namespace stoker::model
