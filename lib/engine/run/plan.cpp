// SPDX-License-Identifier: Apache-2.0
#include "engine/run/plan.h"

#include <algorithm>

namespace stoker::engine {

UpdateWindow EpochPlan::window(int64_t epoch, int64_t update) const {
  UpdateWindow window;
  window.epoch = epoch;
  window.number = epoch * updates() + update;
  window.batch_size = batch_size;
  window.first_batch = std::min(update * accumulation, batches);
  window.batch_count = std::min(accumulation, batches - window.first_batch);
  const int64_t first_image = std::min(window.first_batch * batch_size, images);
  const int64_t end_image = std::min((window.first_batch + window.batch_count) * batch_size, images);
  window.planned_images = end_image - first_image;
  return window;
}

std::optional<StopReason> limit_reached(const RunLimits& limits, const RunProgress& at) {
  if (at.epoch >= limits.epochs) return StopReason::epochs_done;
  if (limits.max_updates > 0 && at.updates >= limits.max_updates) return StopReason::max_updates;
  if (limits.patience > 0 && at.epochs_without_improvement >= limits.patience) return StopReason::no_improvement;
  if (limits.max_seconds > 0 && at.train_seconds >= limits.max_seconds) return StopReason::max_time;
  return std::nullopt;
}

int64_t total_updates(const EpochPlan& plan, const RunLimits& limits) {
  const int64_t by_epochs = limits.epochs * plan.updates();
  return limits.max_updates > 0 ? std::min(by_epochs, limits.max_updates) : by_epochs;
}

}  // namespace stoker::engine
