// SPDX-License-Identifier: Apache-2.0
// The predictions for each sample of an evaluation, gathered as plain values: what statistics and audits work on.
#pragma once

#include <torch/types.h>

#include <vector>

#include "data/feed/device_feed.h"
#include "engine/task/task.h"
#include "statistics/evaluated_samples.h"

namespace stoker::engine {

/// Task::eval_loss_sum of each sample: float32 [B] on the host. outputs [B, num_outputs] float32.
torch::Tensor sample_losses(const TaskSpec& spec, const Task& task, const torch::Tensor& outputs,
                            const data::Batch& batch);

class GatheredSamples {
 public:
  /// `task` is what `spec` describes; it outlives this.
  GatheredSamples(const TaskSpec& spec, const Task& task);
  /// outputs float32 [B, num_outputs], B > 0. Waits for the device.
  void add(const torch::Tensor& outputs, const data::Batch& batch);
  const statistics::EvaluatedSamples& samples() const { return samples_; }

 private:
  void add_classes(const torch::Tensor& outputs, const torch::Tensor& labels);
  void add_numbers(const torch::Tensor& predictions, const torch::Tensor& truth);

  const TaskSpec spec_;
  const Task& task_;
  statistics::EvaluatedSamples samples_;
};

}  // namespace stoker::engine
