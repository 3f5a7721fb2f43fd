// SPDX-License-Identifier: Apache-2.0
// Statistics of the loader; the only header of this module that observers include. Torch-free.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/time/durations.h"
#include "core/time/instrumentation.h"
#include "core/time/trace.h"

namespace stoker::data {

/// Totals since the loader was made; subtract two readings for a window. Seconds are summed over workers.
struct LoaderStats {
  int64_t images = 0;                ///< handed to the consumer
  int64_t bad_images = 0;            ///< skipped
  double consumer_wait_seconds = 0;  ///< the training thread waited for a batch
  double read_seconds = 0;
  double decode_seconds = 0;
  double augment_seconds = 0;
  double resize_seconds = 0;         ///< written to where the batch lives as part of it
  double write_seconds = 0;          ///< pixels that keep their size, copied to where the batch lives
  double worker_idle_seconds = 0;    ///< workers waited for a free buffer
  double worker_cpu_seconds = 0;     ///< CPU time of all worker threads, as the kernel counts
  int64_t batches_ready = 0;         ///< now: decoded and waiting
  int64_t batches_requested = 0;     ///< by the consumer
  int64_t ready_when_requested = 0;  ///< sum over those: decoded and waiting at that moment
  int64_t empty_when_requested = 0;  ///< how many of those had to be waited for
  int64_t batches_capacity = 0;      ///< buffers in the ring
  int64_t ring_bytes = 0;            ///< memory of all buffers
  int64_t cache_bytes = 0;           ///< memory of cached samples, now
  int num_workers = 0;
};

/// The times of single samples by stage since the loader was made.
struct SampleTimes {
  core::DurationCounts read, decode, resize, augment, write;
};

// Where a worker's time goes within a sample, and within many.

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
  StageTimer& operator=(StageTimer&&) = delete;  // not copied, not moved

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
