// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/launch_overhead.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "core/system/stop_signal.h"
#include "engine/device/device.h"
#include "engine/probe/probe_input.h"

namespace stoker::engine {
namespace {

/// Where a busy CPU is shared, passes of many images are interrupted more often than those of few, and the line through
/// both is that of the neighbours. What one thread computes itself they do not change.
PassClock clock_of(const Learner& learner) {
  return learner.device.is_cpu() && at::get_num_threads() == 1 ? PassClock::own_thread : PassClock::wall;
}

/// The least time of several passes: what others do on the machine only adds to it.
double seconds_on(UpdateStep& step, Learner& learner, const data::Batch& batch, double least_seconds) {
  const PassClock clock = clock_of(learner);
  const double begin = seconds_by(clock);
  double least = 0;
  for (int pass = 0; pass < 2 || seconds_by(clock) - begin < least_seconds; ++pass) {
    core::throw_if_stopped();
    const double one = seconds_by(clock);
    step.accumulate(batch, batch.planned_images);
    learner.optimizer->zero_grad();
    synchronize(learner.device);
    const double seconds = seconds_by(clock) - one;
    if (pass == 1 || (pass > 1 && seconds < least)) least = seconds;  // the first one makes plans and buffers
  }
  return least;
}

}  // namespace

double overhead_seconds(Learner& learner, const Task& task, const ProbeSettings& settings, int64_t batch_size,
                        double least_seconds) {
  constexpr int64_t kTimes = 4, kTinyBatch = 8;  // a few images more take little memory
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
