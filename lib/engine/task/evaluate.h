// SPDX-License-Identifier: Apache-2.0
// A model's quality on a dataset, without changing the model.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "data/feed/device_feed.h"
#include "engine/device/precision.h"
#include "engine/run/events.h"
#include "engine/task/task.h"
#include "model/image_model.h"
#include "statistics/weighted_metrics.h"

namespace stoker::engine {

struct EvalReport {
  int64_t images = 0;
  double loss = 0;                  ///< mean of the task's, without smoothing and class weights
  std::vector<Metric> metrics;      ///< as Task::metrics() names them
  std::vector<ResultTable> tables;  ///< when requested

  /// Throws Error{bug} for a metric that the task does not have.
  double value_of(config::EvalMetric which) const;
};

/// Outputs for one batch, float32 [B, num_outputs], in evaluation mode without gradients. images: [B, ..., H, W]. With
/// hflip: the mean of those for the images and for the images mirrored along W, computed one after the other; with
/// several crops, which lie one below the other in an image: the mean of theirs.
torch::Tensor infer(model::ImageModel& model, const torch::Tensor& images, const Precision& precision,
                    config::TestTimeAugmentation tta);

/// Called after each batch with its outputs (float32, on the device).
using BatchVisitor = std::function<void(const data::Batch& batch, const torch::Tensor& outputs)>;

/// Runs over the whole feed in order. The model is left in evaluation mode. Throws core::StopRequested when a
/// stop is requested. `table_names`: names of classes or targets when tables are wanted, else none.
EvalReport evaluate(model::ImageModel& model, const Task& task, data::DeviceFeed& feed, const Precision& precision,
                    config::TestTimeAugmentation tta, const BatchVisitor& visit = {},
                    const std::vector<std::string>& table_names = {});
/// Evaluates outputs that `predict_all` computes: it calls what it is given with each batch, in order. `device`: on
/// which they lie.
EvalReport evaluate_outputs(const Task& task, torch::Device device,
                            const std::function<void(const BatchVisitor&)>& predict_all, const BatchVisitor& visit = {},
                            const std::vector<std::string>& table_names = {});
/// Computes the outputs of the whole feed in order, without labels, and calls `visit` with each batch.
void predict(model::ImageModel& model, data::DeviceFeed& feed, const Precision& precision,
             config::TestTimeAugmentation tta, const BatchVisitor& visit);

// The predictions for each sample of an evaluation, gathered as plain values: what statistics and audits work on.

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

// Samples of an evaluation to look at: those with the largest losses, and some that are evenly spaced.
// Stays on the device until it is read.

class WorstSamples {
 public:
  /// `count`: of the worst; `images`: that the evaluation will have, 0: unknown.
  WorstSamples(const Task& task, int64_t count, int64_t images = 0)
      : task_(task), count_(count), step_(std::max<int64_t>(1, images / kOrdinary)) {}

  /// outputs float32 [B, num_outputs], B > 0. No host sync.
  void add(const data::Batch& batch, const torch::Tensor& outputs);
  /// The worst first; samples whose error is not finite are left out. One host sync.
  std::vector<ShownSample> read() const;
  /// Evenly spaced ones, in the order of the evaluation. One host sync.
  std::vector<ShownSample> read_ordinary() const;

 private:
  static constexpr size_t kOrdinary = 12;

  const Task& task_;
  const int64_t count_, step_;
  std::vector<int64_t> samples_;  ///< all that were added, by position
  torch::Tensor errors_;          // float32 [<= count], descending
  torch::Tensor positions_;       // int64 [<= count]
  torch::Tensor predictions_;     // float32 [<= count, outputs]
  std::vector<int64_t> ordinary_samples_;
  std::vector<torch::Tensor> ordinary_errors_, ordinary_predictions_;  // float32 [1], [1, outputs]
};

}  // namespace stoker::engine
