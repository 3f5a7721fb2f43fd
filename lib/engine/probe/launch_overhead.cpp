// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/launch_overhead.h"

#include <algorithm>
#include <chrono>

#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"
#include "engine/device/device.h"

namespace stoker::engine {
namespace {

using Clock = std::chrono::steady_clock;

/// The least time of several passes: what others do on the machine only adds to it.
double seconds_on(UpdateStep& step, Learner& learner, const data::Batch& batch, double least_seconds) {
  const Clock::time_point begin = Clock::now();
  double least = 0;
  for (int pass = 0; pass < 2 || core::seconds_since(begin) < least_seconds; ++pass) {
    core::throw_if_stopped();
    const Clock::time_point one = Clock::now();
    step.accumulate(batch, batch.planned_images);
    learner.optimizer->zero_grad();
    synchronize(learner.device);
    const double seconds = core::seconds_since(one);
    if (pass == 1 || (pass > 1 && seconds < least)) least = seconds;  // the first one makes plans and buffers
  }
  return least;
}

}  // namespace

double overhead_seconds(Learner& learner, const Task& task, const ProbeSettings& settings, int64_t batch_size,
                        double least_seconds) {
  constexpr int64_t kTimes = 4, kTinyBatch = 8;  // a few images more take memory that nobody misses
  const int64_t images = batch_size <= kTinyBatch ? batch_size : batch_size / kTimes;
  const ScopedSnapshot undisturbed(learner);
  UpdateStep step(settings.update, task, learner);
  learner.model->train();
  const int64_t side = side_of(settings);
  const auto seconds_of = [&](int64_t count) {
    return seconds_on(step, learner, noise_batch(settings, count, side, learner.device), least_seconds / 2);
  };
  const double few = seconds_of(images), many = seconds_of(kTimes * images);
  const double of_images = std::max(0.0, many - few) / (kTimes - 1);
  return std::clamp(few - of_images, 0.0, few);
}

}  // namespace stoker::engine
