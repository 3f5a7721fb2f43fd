// SPDX-License-Identifier: Apache-2.0
// The clocks that passes over a network are timed by.
#pragma once

#include <time.h>

namespace stoker::engine {

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

}  // namespace stoker::engine
