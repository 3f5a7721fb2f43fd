// SPDX-License-Identifier: Apache-2.0
// A model's quality on a dataset, without changing the model.
#pragma once

#include <cstdint>
#include <functional>

#include "data/feed/device_feed.h"
#include "engine/device/precision.h"
#include "engine/task/task.h"
#include "model/image_model.h"

namespace stoker::engine {

struct EvalReport {
  int64_t images = 0;
  double loss = 0;                  ///< mean of the task's, without smoothing and class weights
  std::vector<Metric> metrics;      ///< as Task::metrics() names them
  std::vector<ResultTable> tables;  ///< when asked for

  /// Throws Error{bug} for a metric that the task does not have.
  double value_of(config::EvalMetric which) const;
};

/// Outputs for one batch, float32 [B, num_outputs], in evaluation mode without gradients. images: [B, ..., H, W]. With
/// hflip: the mean of those for the images and for the images mirrored along W, computed one after the other.
torch::Tensor infer(model::ImageModel& model, const torch::Tensor& images, const Precision& precision,
                    config::TestTimeAugmentation tta);

/// Called after each batch with its outputs (float32, on the device).
using BatchVisitor = std::function<void(const data::Batch& batch, const torch::Tensor& outputs)>;

/// Runs over the whole feed in order. The model is left in evaluation mode. Throws core::StopRequested when a
/// stop is asked for. `table_names`: names of classes or targets when tables are wanted, else none.
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

}  // namespace stoker::engine
