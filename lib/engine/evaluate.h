// SPDX-License-Identifier: Apache-2.0
// A model's quality on a dataset, without changing the model.
#pragma once

#include <cstdint>
#include <functional>

#include "data/device_feed.h"
#include "engine/precision.h"
#include "model/model.h"

namespace stoker::engine {

struct EvalReport {
  int64_t images = 0;
  double loss = 0;          ///< mean cross entropy, no label smoothing
  double top1_percent = 0;
  double top5_percent = 0;
};

/// Logits of one batch, float32 [B, num_classes], in evaluation mode without gradients.
torch::Tensor infer(model::ImageModel& model, const torch::Tensor& images, const Precision& precision);

/// Called after each batch with its logits (float32, on the device).
using BatchVisitor = std::function<void(const data::Batch& batch, const torch::Tensor& logits)>;

/// Runs over the whole feed in order. The model is left in evaluation mode. Throws core::StopRequested when a
/// stop is asked for.
EvalReport evaluate(model::ImageModel& model, data::DeviceFeed& feed, const Precision& precision,
                    const BatchVisitor& visit = {});
/// The same without labels.
void predict(model::ImageModel& model, data::DeviceFeed& feed, const Precision& precision,
             const BatchVisitor& visit);

}  // namespace stoker::engine
