// SPDX-License-Identifier: Apache-2.0
#include "engine/run/plan.h"

#include <algorithm>
#include <cmath>

namespace stoker::engine {

UpdateWindow EpochPlan::window(int64_t epoch, int64_t update) const {
  UpdateWindow window;
  window.epoch = epoch;
  window.number = epoch * updates() + update;
  window.batch_size = batch_size;
  window.replicas = replicas;
  window.first_batch = std::min(update * batches_per_update(), batches);
  window.batch_count = std::min(batches_per_update(), batches - window.first_batch);
  const int64_t first_image = std::min(window.first_batch * batch_size, images);
  const int64_t end_image = std::min((window.first_batch + window.batch_count) * batch_size, images);
  window.planned_images = end_image - first_image;
  return window;
}

std::vector<int64_t> own_replicas(int64_t replicas, const RankShare& share) {
  const int64_t own = replicas / share.count;
  std::vector<int64_t> list;
  for (const int64_t place : tree_places(own)) {
    if (place < own) list.push_back(share.rank + place * share.count);
  }
  return list;
}

std::vector<int64_t> own_batches(const UpdateWindow& window, const RankShare& share) {
  std::vector<int64_t> list;
  for (const int64_t replica : own_replicas(window.replicas, share)) {
    for (int64_t batch = replica; batch < window.batch_count; batch += window.replicas) list.push_back(batch);
  }
  return list;
}

std::vector<int64_t> own_batches(const EpochPlan& plan, const RankShare& share) {
  std::vector<int64_t> list;
  for (int64_t update = 0; update < plan.updates(); ++update) {
    const UpdateWindow window = plan.window(/*epoch=*/0, update);
    for (const int64_t batch : own_batches(window, share)) list.push_back(window.first_batch + batch);
  }
  return list;
}

int64_t own_batches_before(const EpochPlan& plan, const RankShare& share, int64_t update) {
  if (update < plan.updates()) return update * plan.batches_per_update() / share.count;
  return (plan.batches - share.rank + share.count - 1) / share.count;  // batch b is of replica b modulo replicas
}

std::vector<UpdateWindow> statistics_windows(const EpochPlan& plan, int64_t epoch, int64_t images) {
  std::vector<UpdateWindow> windows;
  int64_t seen = 0;
  for (int64_t update = 0; update < plan.updates() && seen < images; ++update) {
    windows.push_back(plan.window(epoch, update));
    seen += windows.back().planned_images;
    if (windows.back().batch_count == plan.batches_per_update()) continue;
    windows.pop_back();
    break;
  }
  return windows;
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

using Unit = config::Interval::Unit;

Cadence::Cadence(config::Interval interval, const core::Clock& clock)
    : interval_(interval), clock_(&clock), last_(clock.now()) {}

bool Cadence::due_after_update(int64_t updates) {
  if (interval_.unit == Unit::updates) {
    const auto done = static_cast<double>(updates);
    return std::floor(done / interval_.amount) > std::floor((done - 1) / interval_.amount);
  }
  if (interval_.unit != Unit::seconds) return false;
  const double now = clock_->now();
  if (now - last_ < interval_.amount) return false;
  last_ = now;
  return true;
}

bool Cadence::due_after_epoch(int64_t epochs) const {
  return interval_.unit == Unit::epochs && epochs % std::llround(interval_.amount) == 0;
}

}  // namespace stoker::engine
