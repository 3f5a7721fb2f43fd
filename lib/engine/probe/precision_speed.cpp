// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/precision_speed.h"

#include <time.h>

#include <algorithm>
#include <exception>

#include "core/system/stop_signal.h"
#include "engine/device/out_of_memory.h"
#include "engine/probe/thread_count.h"

namespace stoker::engine {
namespace {

constexpr double kLongPass = 0.03;     // seconds; what starting operations costs is little of it
constexpr double kVeryLongPass = 0.4;  // seconds; one of each is enough

/// Of larger images two may not fit in memory; what they say about speed smaller ones say, too.
int64_t tried_side(const ProbeSettings& settings) {
  constexpr int64_t kTooLarge = 512, kEnough = 256;  // pixels
  const int64_t side = side_of(settings);
  const bool is_square = settings.input.end()[-1] == settings.input.end()[-2];
  return is_square && side > kTooLarge ? kEnough : side;
}

/// Seconds that this thread has computed: what others do on the machine is not in them.
double thread_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of_pass(UpdateStep& step, Learner& learner, const data::Batch& batch) {
  core::throw_if_stopped();
  const double begin = thread_seconds();
  step.accumulate(batch, batch.planned_images);
  learner.optimizer->zero_grad();
  return thread_seconds() - begin;
}

/// False where LibTorch or oneDNN have no way to compute it.
bool can_pass(UpdateStep& step, Learner& learner, const data::Batch& batch, double& seconds) {
  try {
    seconds = seconds_of_pass(step, learner, batch);
    return true;
  } catch (const core::StopRequested&) {
    throw;
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw;
    return false;
  }
}

}  // namespace

double precision_speed(Learner& learner, const Task& task, const ProbeSettings& settings, const Precision& reduced,
                       int64_t batch_size, double least_seconds) {
  const ScopedSnapshot undisturbed(learner);
  const ThreadCount one_thread(1);
  UpdateSettings of_full = settings.update, of_reduced = settings.update;
  of_full.precision.autocast = false;
  of_reduced.precision = reduced;
  UpdateStep full(of_full, task, learner), fewer_bits(of_reduced, task, learner);
  learner.model->train();
  const auto noise = [&](int64_t images) {
    return noise_batch(settings, images, tried_side(settings), learner.device);
  };

  // The first pass makes plans and buffers: of a long one these are little.
  int64_t images = 2;  // of one alone batch norm may not be able to train
  data::Batch batch = noise(images);
  double in_full = seconds_of_pass(full, learner, batch);
  double in_reduced = 0;
  if (!can_pass(fewer_bits, learner, batch, in_reduced)) return 0;
  if (in_full > kVeryLongPass) return in_full / in_reduced;
  while (images < batch_size && seconds_of_pass(full, learner, batch) < kLongPass) {
    images = std::min(2 * images, batch_size);
    batch = noise(images);
    seconds_of_pass(full, learner, batch);
  }
  seconds_of_pass(fewer_bits, learner, batch);

  const double begin = thread_seconds();
  double least_full = 0, least_reduced = 0;
  for (int pass = 0; pass < 2 || thread_seconds() - begin < least_seconds; ++pass) {
    in_full = seconds_of_pass(full, learner, batch);
    in_reduced = seconds_of_pass(fewer_bits, learner, batch);
    least_full = pass == 0 ? in_full : std::min(least_full, in_full);
    least_reduced = pass == 0 ? in_reduced : std::min(least_reduced, in_reduced);
  }
  return least_full / least_reduced;
}

}  // namespace stoker::engine
