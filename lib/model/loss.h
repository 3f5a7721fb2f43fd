// SPDX-License-Identifier: Apache-2.0
// The losses that training minimises. Sums, not means: the caller divides by the images of a whole update, which is
// right for short last batches too.
#pragma once

#include <torch/types.h>

#include <optional>

#include "config/options.h"

namespace stoker::model {

/// Sum over the batch of cross entropy with label smoothing (Szegedy et al. 2016, section 7, as torch defines
/// it). logits float [B, C], labels int64 [B] in [0, C), class_weights float32 [C] or undefined for 1 -> float32 scalar
/// on the same device. Weighted as torch's CrossEntropyLoss(weight, reduction="sum"): nothing is divided by weights.
torch::Tensor cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& labels, double label_smoothing,
                                const torch::Tensor& class_weights = {});

/// Sum over all elements of the cross entropy of sigmoids, as torch's BCEWithLogitsLoss defines it. logits and targets
/// float [B, T], targets in [0, 1]; pos_weight float32 [1] or [T], or undefined for 1; smoothing moves each target
/// towards 1/2 -> float32 [].
torch::Tensor binary_cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& targets,
                                       const torch::Tensor& pos_weight, double label_smoothing);

/// Lin et al. 2017, "Focal Loss for Dense Object Detection": each term of cross_entropy_sum() by (1 - p)^gamma, where p
/// is the softmax of its class.
torch::Tensor focal_sum(const torch::Tensor& logits, const torch::Tensor& labels, double gamma, double label_smoothing,
                        const torch::Tensor& class_weights = {});
/// The same of binary_cross_entropy_sum(), with p the probability of the target: torchvision's sigmoid_focal_loss with
/// alpha -1; pos_weight a / (1 - a) stands for its alpha a, but for a factor.
torch::Tensor sigmoid_focal_sum(const torch::Tensor& logits, const torch::Tensor& targets, double gamma,
                                const torch::Tensor& pos_weight, double label_smoothing);
/// Ridnik et al. 2021, "Asymmetric Loss For Multi-Label Classification": focal with a gamma each for negatives and
/// positives; negatives are first shifted by `margin`, below which they count nothing.
torch::Tensor asymmetric_sum(const torch::Tensor& logits, const torch::Tensor& targets, double negative_gamma,
                             double positive_gamma, double margin, const torch::Tensor& pos_weight,
                             double label_smoothing);

/// Smoothed targets of classes, float32 [B, C]: 1 - s + s / C for the label, s / C elsewhere.
torch::Tensor smoothed_classes(const torch::Tensor& labels, int64_t classes, double label_smoothing);
/// Sum over the batch of the mean over classes of the cross entropy of sigmoids: timm's BinaryCrossEntropy. `wanted`
/// [B, C] as smoothed_classes() makes it, mixed or not; what is above `threshold`, where there is one, counts as 1 and
/// the rest as 0. class_weights as the `weight` of BCEWithLogitsLoss.
torch::Tensor classes_bce_sum(const torch::Tensor& logits, const torch::Tensor& wanted,
                              const std::optional<double>& threshold, const torch::Tensor& class_weights = {});

/// Sum over the batch of T^2 KL(teacher || student) of softmax at temperature T: Hinton et al. 2015, "Distilling the
/// Knowledge in a Neural Network". Both float [B, C], any of them reduced -> float32 []; no gradient for the teacher.
torch::Tensor distillation_sum(const torch::Tensor& logits, const torch::Tensor& teacher, double temperature);

/// Sum over all elements of |d|, d^2, smooth L1 with beta 1 (d^2 / 2 below 1, |d| - 1/2 above; Girshick 2015), or
/// Huber's loss with a delta (d^2 / 2 below, delta (|d| - delta / 2) above). differences float32, any shape ->
/// float32 [].
torch::Tensor regression_loss_sum(const torch::Tensor& differences, const config::Loss& loss);

}  // namespace stoker::model
