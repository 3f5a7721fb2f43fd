// SPDX-License-Identifier: Apache-2.0
// Sums of loss and score that stay on the device until they are read, which is the host sync. The task defines the
// score.
#pragma once

#include <torch/types.h>

namespace stoker::engine {

struct RunProgress;

struct SumValues {
  double loss_sum = 0;
  double score_sum = 0;
  int64_t images = 0;
};

/// Those of the epoch under way, as the state of a run keeps them.
SumValues epoch_sums(const RunProgress& at);
void set_epoch_sums(const SumValues& sums, RunProgress& at);

class RunningSums {
 public:
  explicit RunningSums(torch::Device device) : device_(device) { reset(); }

  void reset() { restore({}); }
  /// Continues from saved sums.
  void restore(const SumValues& values);
  /// Both [] of any real type, over `images` images; `score_sum` may be undefined. No host sync.
  void add(const torch::Tensor& loss_sum, const torch::Tensor& score_sum, int64_t images);
  /// Adds what `other` has summed. No host sync.
  void add(const RunningSums& other);
  /// A copy of the sums, which goes on apart from these. No host sync.
  RunningSums copy() const;
  /// The sums so far: one host sync.
  SumValues read() const;
  /// What read() copies: float64 [2] on the device.
  const torch::Tensor& figures() const { return sums_; }
  SumValues read(const double* figures) const { return {figures[0], figures[1], images_}; }
  int64_t images() const { return images_; }  ///< counted on the host: no sync

 private:
  torch::Device device_;
  torch::Tensor sums_;  // float64 [2] on the device: loss, score
  int64_t images_ = 0;
};

}  // namespace stoker::engine
