// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/measured_training.h"

#include <algorithm>
#include <chrono>

#include "core/time/elapsed.h"
#include "engine/device/device.h"

namespace stoker::engine {

MeasuredTraining::MeasuredTraining(const UpdaterSettings& settings, const Task& task, Learner& learner,
                                   data::DeviceFeed& feed, const EpochPlan& plan, const optim::UpdateRates& rates,
                                   StepTimer* timer, Group& group)
    : plan_(plan),
      rates_(rates),
      learner_(learner),
      feed_(feed),
      updater_(settings, task, learner, timer, group),
      batches_(feed, group.size()) {
  learner.model->train();
  batches_.begin_epoch(epoch_, /*first_batch=*/0);
}

/// Returns its images.
int64_t MeasuredTraining::update() {
  if (update_in_epoch_ == plan_.updates()) {
    batches_.begin_epoch(++epoch_, /*first_batch=*/0);
    update_in_epoch_ = 0;
  }
  return updater_.update(batches_, plan_.window(epoch_, update_in_epoch_++), rates_);
}

void MeasuredTraining::warm_up(int64_t updates) {
  for (int64_t i = 0; i < updates; ++i) update();
  synchronize(learner_.device);
}

MeasuredUpdates MeasuredTraining::measure(const std::function<bool(const MeasuredUpdates&)>& is_enough) {
  MeasuredUpdates measured;
  const double waited_before = feed_.loader().stats().consumer_wait_seconds;
  const auto begin = std::chrono::steady_clock::now();
  do {
    measured.images += update();
    ++measured.updates;
    measured.seconds = core::seconds_since(begin);
  } while (!is_enough(measured));
  synchronize(learner_.device);
  measured.seconds = std::max(1e-9, core::seconds_since(begin));
  measured.data_wait_seconds = feed_.loader().stats().consumer_wait_seconds - waited_before;
  return measured;
}

}  // namespace stoker::engine
