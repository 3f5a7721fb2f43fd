// SPDX-License-Identifier: Apache-2.0
// Samples of an evaluation to look at: those that the network is most wrong about, and some that are evenly spaced.
// Stays on the device until it is read.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "data/feed/device_feed.h"
#include "engine/run/events.h"
#include "engine/task/task.h"

namespace stoker::engine {

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
