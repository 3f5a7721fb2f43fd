// SPDX-License-Identifier: Apache-2.0
// Updates on real data, as training does them, for as long as somebody measures how fast they are.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/step/updater.h"

namespace stoker::engine {

/// What `updates` updates took, from when the device had nothing left to do until it had done them.
struct MeasuredUpdates {
  int64_t updates = 0, images = 0;
  double seconds = 0;
  double data_wait_seconds = 0;  ///< of these: until batches were there

  double images_per_second() const { return static_cast<double>(images) / seconds; }
};

/// Trains epoch after epoch with one learning rate, from the first batch of epoch 0 on. The weights change.
class MeasuredTraining {
 public:
  /// All but settings are borrowed. `timer`, `group`: see Updater. `feed` has the batches of this rank.
  MeasuredTraining(const UpdaterSettings& settings, const Task& task, Learner& learner, data::DeviceFeed& feed,
                   const EpochPlan& plan, const optim::UpdateRates& rates, StepTimer* timer = nullptr,
                   Group& group = alone());

  /// Computes `updates` updates; the device has done them when this returns. Throws as training does,
  /// core::StopRequested.
  void warm_up(int64_t updates);
  /// Updates until `is_enough` returns true for those since the call, at least one. The device must have done all that
  /// was asked of it before. Throws as warm_up().
  MeasuredUpdates measure(const std::function<bool(const MeasuredUpdates& so_far)>& is_enough);

 private:
  int64_t update();

  const EpochPlan plan_;
  const optim::UpdateRates rates_;
  Learner& learner_;
  data::DeviceFeed& feed_;
  Updater updater_;
  EpochFeed batches_;
  int64_t epoch_ = 0, update_in_epoch_ = 0;
};

}  // namespace stoker::engine
