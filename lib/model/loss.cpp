// SPDX-License-Identifier: Apache-2.0
// Losses in float32. Labels are taken as they are: whoever reads the data has checked them.
#include "model/loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/zeros_like.h>

namespace stoker::model {

namespace {

/// (1 - p)^gamma; its gradient stays finite where p is 1.
torch::Tensor focus(const torch::Tensor& rest, const torch::Tensor& gamma) { return rest.clamp_min(1e-8).pow(gamma); }
torch::Tensor focus(const torch::Tensor& rest, double gamma) { return rest.clamp_min(1e-8).pow(gamma); }

torch::Tensor smoothed_labels(const torch::Tensor& targets, double label_smoothing) {
  return label_smoothing > 0 ? targets * (1 - label_smoothing) + label_smoothing / 2 : targets;
}

}  // namespace

torch::Tensor cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& labels, double label_smoothing,
                                const torch::Tensor& class_weights) {
  // No label means "ignore": a class number can never be this one.
  constexpr int64_t kIgnoreNothing = -1;
  return at::cross_entropy_loss(logits.to(torch::kFloat32), labels, class_weights, at::Reduction::Sum, kIgnoreNothing,
                                label_smoothing);
}

torch::Tensor distillation_sum(const torch::Tensor& logits, const torch::Tensor& teacher, double temperature) {
  const auto softened = [temperature](const torch::Tensor& outputs) {
    return at::log_softmax(outputs.to(torch::kFloat32) / temperature, /*dim=*/1);
  };
  return temperature * temperature *
         at::kl_div(softened(logits), softened(teacher), at::Reduction::Sum, /*log_target=*/true);
}

torch::Tensor binary_cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& targets,
                                       const torch::Tensor& pos_weight, double label_smoothing) {
  return at::binary_cross_entropy_with_logits(logits.to(torch::kFloat32), smoothed_labels(targets, label_smoothing),
                                              /*weight=*/{}, pos_weight, at::Reduction::Sum);
}

torch::Tensor focal_sum(const torch::Tensor& logits, const torch::Tensor& labels, double gamma, double label_smoothing,
                        const torch::Tensor& class_weights) {
  const torch::Tensor logs = logits.to(torch::kFloat32).log_softmax(1);
  torch::Tensor terms = -logs * focus(1 - logs.exp(), gamma);
  if (class_weights.defined()) terms = terms * class_weights;
  return (smoothed_classes(labels, logits.size(1), label_smoothing) * terms).sum();
}

torch::Tensor sigmoid_focal_sum(const torch::Tensor& logits, const torch::Tensor& targets, double gamma,
                                const torch::Tensor& pos_weight, double label_smoothing) {
  const torch::Tensor wanted = smoothed_labels(targets, label_smoothing), values = logits.to(torch::kFloat32);
  const torch::Tensor terms =
      at::binary_cross_entropy_with_logits(values, wanted, /*weight=*/{}, pos_weight, at::Reduction::None);
  const torch::Tensor p = values.sigmoid();
  return (terms * focus(p + wanted - 2 * p * wanted, gamma)).sum();
}

torch::Tensor asymmetric_sum(const torch::Tensor& logits, const torch::Tensor& targets, double negative_gamma,
                             double positive_gamma, double margin, const torch::Tensor& pos_weight,
                             double label_smoothing) {
  constexpr double kLeast = 1e-8;  // of a probability before its logarithm
  const torch::Tensor wanted = smoothed_labels(targets, label_smoothing);
  const torch::Tensor positive = logits.to(torch::kFloat32).sigmoid(), negative = (1 - positive + margin).clamp_max(1);
  torch::Tensor of_positives = wanted * positive.clamp_min(kLeast).log();
  if (pos_weight.defined()) of_positives = of_positives * pos_weight;
  const torch::Tensor of_negatives = (1 - wanted) * negative.clamp_min(kLeast).log();
  const torch::Tensor p = positive * wanted + negative * (1 - wanted);
  const torch::Tensor gamma = positive_gamma * wanted + negative_gamma * (1 - wanted);
  return -((of_positives + of_negatives) * focus(1 - p, gamma)).sum();
}

torch::Tensor smoothed_classes(const torch::Tensor& labels, int64_t classes, double label_smoothing) {
  const double rest = label_smoothing / static_cast<double>(classes);
  const torch::Tensor wanted =
      at::full({labels.size(0), classes}, rest, torch::TensorOptions(labels.device()).dtype(torch::kFloat32));
  return wanted.scatter_(1, labels.unsqueeze(1), 1 - label_smoothing + rest);
}

torch::Tensor classes_bce_sum(const torch::Tensor& logits, const torch::Tensor& wanted,
                              const std::optional<double>& threshold, const torch::Tensor& class_weights) {
  const torch::Tensor targets = threshold ? wanted.gt(*threshold).to(torch::kFloat32) : wanted;
  return at::binary_cross_entropy_with_logits(logits.to(torch::kFloat32), targets, class_weights, /*pos_weight=*/{},
                                              at::Reduction::Sum) /
         static_cast<double>(logits.size(1));
}

torch::Tensor regression_loss_sum(const torch::Tensor& differences, const config::Loss& loss) {
  switch (loss.kind) {
    case config::LossKind::l1: return differences.abs().sum();
    case config::LossKind::l2: return differences.square().sum();
    case config::LossKind::huber:
      return at::huber_loss(differences, at::zeros_like(differences), at::Reduction::Sum, loss.numbers.at(0));
    default: break;
  }
  return at::smooth_l1_loss(differences, at::zeros_like(differences), at::Reduction::Sum, /*beta=*/1.0);
}

}  // namespace stoker::model
