// SPDX-License-Identifier: Apache-2.0
// Trying a network on noise so that nothing of it is left behind.
#pragma once

#include <ATen/Parallel.h>
#include <time.h>

#include <cstdint>
#include <vector>

#include "engine/step/learner.h"
#include "engine/step/state_snapshot.h"
#include "engine/step/update_step.h"
#include "engine/task/task.h"

namespace stoker::engine {

struct ProbeSettings {
  UpdateSettings update;
  std::vector<int64_t> input;  ///< shape of one image or clip as the network sees it: {3, 224, 224}
  int64_t num_classes = 0;     ///< or targets
  bool channels_last = false;
  bool mixes = false;        ///< mixup or CutMix is on
  bool accumulates = false;  ///< an update has several batches
  config::TestTimeAugmentation tta = config::TestTimeAugmentation::none;
  int64_t memory_bytes = 0;  ///< what may be taken; 0: not known
};

/// The longer side of an input, in pixels.
int64_t side_of(const ProbeSettings& settings);
bool is_square(const ProbeSettings& settings);

/// `images` of noise as the feed would hand them over, with `side` pixels as the longer side.
data::Batch noise_batch(const ProbeSettings& settings, int64_t images, int64_t side, torch::Device device);

/// Whether the network computes squares of `side` pixels, in the mode in which it is: one forward pass over two of
/// noise, without gradients. Buffers and random state are for the caller to restore. Throws when memory ran
/// out, which is not an answer.
bool takes_squares_of(model::ImageModel& model, const ProbeSettings& settings, int64_t side, torch::Device device);

/// Pixels of the squares on which the speed of `model` is measured: those of its input, or 256 where these are above
/// 512 and takes_squares_of() returns true for such images, too. Of larger ones two may not fit in memory, and smaller
/// ones show the same speed. Throws as takes_squares_of().
int64_t side_to_try(model::ImageModel& model, const ProbeSettings& settings, torch::Device device);

/// For its lifetime a learner may be tried: buffers, gradients and random state are as before afterwards, whichever way
/// it ends.
class ScopedSnapshot {
 public:
  explicit ScopedSnapshot(Learner& learner) : learner_(learner), kept_(*learner.model, learner.device) {}
  ~ScopedSnapshot() {
    learner_.optimizer->zero_grad();
    kept_.restore();
    learner_.model->train();
  }
  ScopedSnapshot& operator=(ScopedSnapshot&&) = delete;  // not copied, not moved

 private:
  Learner& learner_;
  StateSnapshot kept_;
};

// The clocks that passes over a network are timed by.

enum class PassClock {
  own_thread,  ///< time that the calling thread computed, which neighbours do not change; for one thread of a CPU
  wall         ///< time that passed
};

/// Seconds since some moment in the past: differences count.
inline double seconds_by(PassClock clock) {
  timespec time = {};
  ::clock_gettime(clock == PassClock::wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Measuring with another number of CPU threads than the run's.

/// For its lifetime LibTorch computes with `threads` CPU threads; then with as many as before.
class ThreadCount {
 public:
  explicit ThreadCount(int64_t threads) : before_(at::get_num_threads()) { set(threads); }
  ~ThreadCount() { at::set_num_threads(before_); }
  ThreadCount& operator=(ThreadCount&&) = delete;  // not copied, not moved
  void set(int64_t threads) const { at::set_num_threads(static_cast<int>(threads)); }

 private:
  const int before_;
};

}  // namespace stoker::engine
