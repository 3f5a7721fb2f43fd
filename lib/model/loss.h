// SPDX-License-Identifier: Apache-2.0
// The losses that training minimises. Sums, not means: the caller divides by the images of a whole update, which is
// right for short last batches too.
#pragma once

#include <torch/types.h>

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

/// Sum over all elements of |d|, d^2, or smooth L1 with beta 1 (d^2 / 2 below 1, |d| - 1/2 above; Girshick 2015).
/// differences float32, any shape -> float32 [].
torch::Tensor regression_loss_sum(const torch::Tensor& differences, config::RegressionLoss loss);

}  // namespace stoker::model
