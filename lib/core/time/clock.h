// SPDX-License-Identifier: Apache-2.0
// The clock of whatever measures: the steady clock of this machine, or one that a test moves by hand.
#pragma once

#include <chrono>
#include <thread>

namespace stoker::core {

/// Safe to use from any thread.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Seconds since some moment in the past; never goes back.
  virtual double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  /// Returns when at least `seconds` have passed.
  virtual void sleep(double seconds) const { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
};

/// The steady clock of this machine; lives as long as the program.
inline const Clock& machine_clock() {
  static const Clock clock;
  return clock;
}

// How long ago a moment was, by the clock that never goes back.

/// Wall seconds from `begin` until now.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace stoker::core
