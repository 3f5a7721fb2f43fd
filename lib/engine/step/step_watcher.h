// SPDX-License-Identifier: Apache-2.0
// Who looks on while an update is computed: sees what the network saw and changes nothing.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "data/feed/device_feed.h"
#include "engine/step/learner.h"
#include "engine/step/mixup.h"

namespace stoker::engine {

/// A batch behind its backward pass. What is referred to lives as long as the call.
struct SeenBatch {
  int64_t batch_in_window = 0;
  const data::Batch& batch;      ///< with its own labels and targets; its images are from before they were mixed
  const torch::Tensor& images;   ///< float32 [B, ...] on the device, as the network got them
  const torch::Tensor& outputs;  ///< [B, num_outputs]
  const Mix& mix;
};

class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  /// After each batch of the update. Where an update is done again, in smaller micro-batches, its batches come again.
  virtual void saw_batch(const SeenBatch& seen) = 0;
  /// Once all gradients of the update are added up, before they are clipped and applied. They are multiplied by the
  /// loss scale. Not called where no image was left.
  virtual void saw_gradients(const Learner& /*learner*/) {}
};

}  // namespace stoker::engine
