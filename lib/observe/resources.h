// SPDX-License-Identifier: Apache-2.0
// What this process uses of the machine, from /proc.
#pragma once

#include <chrono>
#include <string>

namespace stoker::observe {

/// Reads CPU use as a difference between two calls; one owner, one thread.
class ResourceMeter {
 public:
  ResourceMeter();
  /// "CPU: 45.2% | RAM:1.4/64.0GB(2.2%)": CPU of all usable cores since the last call, resident memory of this
  /// process against the machine's (or cgroup's) total. What cannot be read is "n/a".
  std::string text();

 private:
  std::chrono::steady_clock::time_point last_time_;
  double last_cpu_seconds_;
  int cpus_;
  double ram_bytes_;
};

}  // namespace stoker::observe
