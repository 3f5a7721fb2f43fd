// SPDX-License-Identifier: Apache-2.0
// Statistics of the loader; the only header of this module that observers include. Torch-free.
#pragma once

#include <cstdint>

#include "core/time/durations.h"

namespace stoker::data {

/// Totals since the loader was made; subtract two readings for a window. Seconds are summed over workers.
struct LoaderStats {
  int64_t images = 0;                ///< handed to the consumer
  int64_t bad_images = 0;            ///< skipped
  double consumer_wait_seconds = 0;  ///< the training thread waited for a batch
  double read_seconds = 0;
  double decode_seconds = 0;
  double augment_seconds = 0;
  double resize_seconds = 0;       ///< written to where the batch lives as part of it
  double write_seconds = 0;        ///< pixels that keep their size, copied to where the batch lives
  double worker_idle_seconds = 0;  ///< workers waited for a free buffer
  double worker_cpu_seconds = 0;   ///< of all worker threads, as the kernel counts
  int64_t batches_ready = 0;       ///< now: decoded and waiting
  int64_t batches_asked_for = 0;   ///< by the consumer
  int64_t ready_when_asked = 0;    ///< sum over those: decoded and waiting at that moment
  int64_t empty_when_asked = 0;    ///< how many of those had to be waited for
  int64_t batches_capacity = 0;    ///< buffers in the ring
  int64_t ring_bytes = 0;          ///< memory of all buffers
  int64_t cache_bytes = 0;         ///< memory of cached samples, now
  int num_workers = 0;
};

/// What single samples took by stage since the loader was made.
struct SampleTimes {
  core::DurationCounts read, decode, resize, augment, write;
};

}  // namespace stoker::data
