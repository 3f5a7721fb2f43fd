// SPDX-License-Identifier: Apache-2.0
// Forward, loss and backward of one batch as a graph that is recorded once: for batches of one kind, with the bits of
// computing them one operation after the other.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/feed/device_feed.h"
#include "engine/device/device.h"
#include "engine/step/learner.h"

namespace stoker::engine {

/// The inputs of one forward and backward pass.
struct MicroBatch {
  data::Batch batch;           ///< its images mixed, where any are
  data::Batch partners;        ///< the other labels and targets of mixed images; empty when nothing is mixed
  double lambda = 1;           ///< share of a mixed image's own label, in [0, 1]; 1: nothing is mixed
  torch::Tensor shares;        ///< both shares as float32 [2] on the device, read instead of lambda; or undefined
  int64_t planned_images = 0;  ///< images of the update: the gradient is averaged over them

  bool is_mixed() const { return lambda < 1; }
};

/// The results of a forward pass; both stay on the device.
struct PassResult {
  torch::Tensor outputs;   ///< [B, num_outputs], float32 or the autocast type
  torch::Tensor loss_sum;  ///< float32 [], sum over the micro-batch
};

/// For one thread and the learner's own network, as long as its tensors stay where they are in memory.
///
/// The record reads buffers of its own, into which each batch is copied, and writes gradients that it owns. Behind a
/// replay these are the gradients of the network where it had none, and are added to those that it had: as the backward
/// pass does it, in the same order. Zeroing gradients by dropping them is therefore fine.
class StepGraph {
 public:
  /// Adds the gradients of a micro-batch to the network's; operation by operation, without a host sync.
  using Compute = std::function<PassResult(const MicroBatch&)>;

  /// `is_required`: what cannot be recorded ends the run, else it is computed operation by operation from there on.
  /// Both are borrowed.
  StepGraph(GraphRunner& runner, Learner& learner, bool is_required)
      : runner_(runner), learner_(learner), is_required_(is_required) {}

  /// The result of `compute` for `input`. A kind of batch (sizes, types, images of the update, mixed or not) that comes
  /// kWarmUps times in a row is recorded at the next one; batches of other kinds are computed directly. The result
  /// holds until the next call. Throws Error{config} when it cannot be recorded, but is required.
  PassResult compute(const MicroBatch& input, const Compute& compute);
  /// Drops the record with its memory; another one may follow.
  void forget();
  /// Whether batches are replayed.
  bool is_recorded() const { return record_ != nullptr; }
  /// Whether recording failed, so that nothing will be recorded any more.
  bool has_given_up() const { return has_given_up_; }
  int64_t replays() const { return replays_; }

  static constexpr int64_t kWarmUps = 3;

 private:
  using Kind = std::vector<int64_t>;

  static Kind kind_of(const MicroBatch& input);
  bool can_record(const MicroBatch& input, const Compute& compute);
  void record(const MicroBatch& input, const Compute& compute);
  PassResult replay(const MicroBatch& input);
  void take_input(const MicroBatch& input);
  std::vector<torch::Tensor> park_gradients();
  void restore_gradients(const std::vector<torch::Tensor>& parked);
  bool has_moved() const;

  GraphRunner& runner_;
  Learner& learner_;
  const bool is_required_;
  Kind kind_;  ///< that is recorded, or being warmed up
  int64_t warm_ups_ = 0, others_in_row_ = 0, replays_ = 0;
  bool has_given_up_ = false;
  std::unique_ptr<RecordedWork> record_;
  MicroBatch input_;                      ///< the buffers that the record reads
  PassResult result_;                     ///< that it writes
  std::vector<torch::Tensor> gradients_;  ///< that it writes, by parameter; undefined where there is none
  struct Place {
    torch::Tensor tensor;
    const void* memory;
  };
  std::vector<Place> places_;  ///< addresses of the weights and buffers that it uses
};

}  // namespace stoker::engine
