// SPDX-License-Identifier: Apache-2.0
// Which samples of an evaluation the network is most wrong about. Stays on the device until it is read.
#pragma once

#include <torch/types.h>

#include <vector>

#include "data/feed/device_feed.h"
#include "engine/run/events.h"
#include "engine/task/task.h"

namespace stoker::engine {

class WorstSamples {
 public:
  WorstSamples(const Task& task, int64_t count) : task_(task), count_(count) {}

  /// outputs float32 [B, num_outputs], B > 0. No host sync.
  void add(const data::Batch& batch, const torch::Tensor& outputs);
  /// The worst first; samples whose error is not finite are left out. One host sync.
  std::vector<WorstSample> read() const;

 private:
  const Task& task_;
  const int64_t count_;
  std::vector<int64_t> samples_;  ///< all that were added, by position
  torch::Tensor errors_;          // float32 [<= count], descending
  torch::Tensor positions_;       // int64 [<= count]
  torch::Tensor predictions_;     // float32 [<= count, outputs]
};

}  // namespace stoker::engine
