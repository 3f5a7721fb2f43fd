// SPDX-License-Identifier: Apache-2.0
// Where a worker's time goes within a sample, and within many.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/time/durations.h"
#include "core/time/instrumentation.h"
#include "core/time/trace.h"
#include "data/loader/loader_stats.h"

namespace stoker::data {

/// Nanoseconds of one worker since the last reset, by stage. A resize writes where the batch lives; `write`
/// is what is copied there as it is.
struct StageTimes {
  int64_t read = 0, decode = 0, resize = 0, augment = 0, write = 0;
};

/// Adds the time of a scope to a counter, and to the trace while one is recorded.
class StageTimer {
 public:
  StageTimer(const char* stage, int64_t& total) : stage_(stage), total_(total), instrumented_(core::is_instrumented()) {
    if (instrumented_) start_ = std::chrono::steady_clock::now();
  }
  ~StageTimer() {
    if (!instrumented_) return;
    const auto end = std::chrono::steady_clock::now();
    total_ += std::chrono::duration_cast<std::chrono::nanoseconds>(end - start_).count();
    if (core::is_tracing()) core::add_span(stage_, start_, end);
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  const char* const stage_;
  int64_t& total_;
  const bool instrumented_;
  std::chrono::steady_clock::time_point start_;
};

/// The samples of one worker: written by it, read by any thread.
struct StageRecord {
  core::DurationRecord read, decode, resize, augment, write;

  void add(const StageTimes& sample) {
    read.add(sample.read);
    decode.add(sample.decode);
    resize.add(sample.resize);
    augment.add(sample.augment);
    write.add(sample.write);
  }
  void add_to(SampleTimes& sum) const {
    sum.read += read.counts();
    sum.decode += decode.counts();
    sum.resize += resize.counts();
    sum.augment += augment.counts();
    sum.write += write.counts();
  }
};

}  // namespace stoker::data
