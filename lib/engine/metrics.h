// SPDX-License-Identifier: Apache-2.0
// Sums of loss and hits that stay on the device until somebody asks: reading them is the host sync.
#pragma once

#include <torch/types.h>

namespace stoker::engine {

struct MetricValues {
  double loss_sum = 0;
  double top1_count = 0;
  double top5_count = 0;
  int64_t images = 0;
};

class ClassificationMetrics {
 public:
  /// `with_top5` costs a partial sort per batch; training goes without.
  ClassificationMetrics(torch::Device device, bool with_top5);

  void reset() { restore({}); }
  /// Continues from saved sums.
  void restore(const MetricValues& values);
  /// loss_sum float [], logits float [B, C], labels int64 [B]; no host sync.
  void add(const torch::Tensor& loss_sum, const torch::Tensor& logits, const torch::Tensor& labels);
  /// The sums so far: one host sync.
  MetricValues read() const;
  int64_t images() const { return images_; }  ///< counted on the host: no sync

 private:
  torch::Device device_;
  bool with_top5_;
  torch::Tensor sums_;  // float64 [3] on the device: loss, top-1 hits, top-5 hits
  int64_t images_ = 0;
};

}  // namespace stoker::engine
