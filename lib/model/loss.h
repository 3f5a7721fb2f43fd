// SPDX-License-Identifier: Apache-2.0
// What training minimises. Sums, not means: the caller divides by the images of a whole update, which is
// right for short last batches too.
#pragma once

#include <torch/types.h>

namespace stoker::model {

/// Sum over the batch of cross entropy with label smoothing (Szegedy et al. 2016, section 7, as torch defines
/// it). logits float [B, C], labels int64 [B] in [0, C) -> float32 scalar on the same device.
torch::Tensor cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& labels,
                                double label_smoothing);

}  // namespace stoker::model
