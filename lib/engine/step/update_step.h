// SPDX-License-Identifier: Apache-2.0
// One optimizer update: gradients gathered over batches, then applied. The arithmetic of training, without
// the loop around it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "config/options.h"
#include "data/feed/device_feed.h"
#include "engine/device/precision.h"
#include "engine/step/learner.h"
#include "engine/step/mixup.h"
#include "engine/step/step_graph.h"
#include "engine/step/step_timer.h"
#include "engine/task/task.h"

namespace stoker::engine {

// Who looks on while an update is computed: sees what the network saw and changes nothing.

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
  virtual void on_batch(const SeenBatch& seen) = 0;
  /// Once all gradients of the update are added up, before they are clipped and applied. They are multiplied by the
  /// loss scale. Not called where no image was left.
  virtual void on_gradients(const Learner& /*learner*/) {}
};

struct UpdateSettings {
  Precision precision;
  double clip_grad = 0;  ///< 0: off
  config::ClipMode clip_mode = config::ClipMode::norm;
};

/// The results of a forward pass, and the labels or targets that they are scored against: of mixed images the larger
/// share's.
struct Forward : PassResult {
  data::Batch scored_against;
};

class UpdateStep {
 public:
  /// `timer` is notified when a part is done; may be absent.
  UpdateStep(const UpdateSettings& settings, const Task& task, Learner& learner, StepTimer* timer = nullptr)
      : settings_(settings), task_(task), learner_(learner), timer_(timer) {}

  /// Context of the passes of a batch.
  struct Along {
    /// Called before the backward pass of the last micro-batch; may be empty.
    std::function<void()> before_last_backward = {};
    StepWatcher* watcher = nullptr;
    int64_t batch_in_window = 0;  ///< for the watcher
    StepGraph* graph = nullptr;   ///< that the batch may be computed by; null: no graph
  };

  /// Adds the gradient of this batch's share of the update's mean loss: its sum of losses divided by
  /// `images_in_update`, which is right for short last batches and windows too. The loss of mixed images is
  /// shared between the labels of both, which is what cross entropy with their mixed one-hot labels comes to. In
  /// micro_batches(): one micro-batch after the other, so that the activations of one are held at a time. No host sync.
  Forward accumulate(const data::Batch& batch, int64_t images_in_update, const Mix& mix, const Along& along) const;
  Forward accumulate(const data::Batch& batch, int64_t images_in_update, const Mix& mix = {}) const {
    return accumulate(batch, images_in_update, mix, Along());
  }
  /// After skipped images: the mean is over `images`, not over the `planned` that accumulate() was given.
  void correct_mean(int64_t planned, int64_t images);
  /// Moves the weights along the gradients, unless fp16 made them overflow; then frees the gradients. Without any
  /// gradient nothing happens. No host sync with fused optimizers.
  void apply(const optim::UpdateRates& rates);

  /// In how many micro-batches each batch is computed from here on, as far as each has two images: batch norm sees a
  /// micro-batch at a time, all else is the sum over them.
  void set_micro_batches(int64_t micro_batches) { micro_batches_ = micro_batches; }
  int64_t micro_batches() const { return micro_batches_; }

  /// Before clipping, of the last update: float32 [] on the device; undefined when not measured.
  const torch::Tensor& gradient_norm() const { return gradient_norm_; }

 private:
  PassResult accumulate_micro_batch(const MicroBatch& micro_batch, StepTimer* timer,
                                    const std::function<void()>& before_backward) const;
  PassResult accumulate_by_graph(const MicroBatch& whole, StepGraph& graph) const;

  UpdateSettings settings_;
  const Task& task_;
  Learner& learner_;
  StepTimer* const timer_;
  int64_t micro_batches_ = 1;
  torch::Tensor gradient_norm_;
};

}  // namespace stoker::engine
