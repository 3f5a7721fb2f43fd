// SPDX-License-Identifier: Apache-2.0
// Where a worker's time goes within a sample. Knows nothing of what the stages do.
#pragma once

#include <chrono>
#include <cstdint>

namespace stoker::data {

/// Nanoseconds of one worker since the last reset, by stage. A resize writes where the batch lives; `write`
/// is what is copied there as it is.
struct StageTimes {
  int64_t read = 0, decode = 0, resize = 0, augment = 0, write = 0;
};

/// Adds the time of a scope to a counter.
class StageTimer {
 public:
  explicit StageTimer(int64_t& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~StageTimer() {
    total_ += std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_)
                  .count();
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  int64_t& total_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace stoker::data
