// SPDX-License-Identifier: Apache-2.0
// The inside of the loader, shared by the consumer's side (loader.cpp) and the workers' (loader_workers.cpp).
#pragma once

#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/system/mutex.h"
#include "data/loader/batch_ring.h"
#include "data/loader/loader.h"
#include "data/loader/loader_stats.h"
#include "data/loader/sample_reader.h"
#include "data/source.h"

namespace stoker::data {

// The memory of one batch in the loader's ring. Who may touch it when: see BatchBuffer.

/// A row that holds no image: either the image is bad, or something broke that no batch can be made without.
struct RowError {
  int64_t row = 0;
  std::string reason;                ///< why an image is bad
  std::optional<core::Error> error;  ///< anything else
};

/// A row whose image was damaged and repaired.
struct RowRepair {
  int64_t row = 0;
  std::string reason;
};

/// Between being freed and being ready its rows belong to the workers that hold their row indices, and its errors are
/// added while the loader's mutex is held; when it is ready, all of it belongs to the consumer.
struct BatchBuffer {
  torch::Tensor images;   ///< [batch_size, H, W, C] or [batch_size, T, H, W, C] of the shape's element; undefined
                          ///< until first used
  torch::Tensor labels;   ///< int64 [batch_size]
  torch::Tensor targets;  ///< float32 [batch_size, num_targets]
  uint8_t* image_rows = nullptr;  ///< row_bytes each
  int64_t* label_rows = nullptr;
  float* target_rows = nullptr;
  int64_t row_bytes = 0;
  int64_t num_targets = 0;
  std::vector<int64_t> samples;       ///< [batch_size] source indices
  std::vector<RowError> row_errors;   ///< in order of completion
  std::vector<RowRepair> repairs;     ///< in order of completion
  std::atomic<int64_t> rows_left{0};  ///< not yet written; the worker that takes it to 0 makes the buffer ready

  /// Page-locked if `pinned`. Throws Error{out_of_memory}.
  void allocate(int64_t batch_size, const SampleShape& shape, int64_t targets_per_sample, bool pinned);
  int64_t bytes() const;
  void sort_row_errors();
  /// Moves later rows over the failed ones, which are sorted; returns how many of the first `rows` rows are
  /// left.
  int64_t close_gaps(int64_t rows);
};

using LoaderClock = std::chrono::steady_clock;

inline int64_t nanoseconds_since(LoaderClock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(LoaderClock::now() - start).count();
}

/// The plan of an epoch; written while no worker is active.
struct EpochOrder {
  int64_t epoch = 0;
  int64_t first_batch = 0;
  int64_t batches = 0;             ///< from first_batch to the end of the own ones
  std::vector<uint32_t> order;     ///< empty: as in the source
  std::vector<uint32_t> rounds;    ///< which repeat of its sample each is; empty: there are none
  std::vector<int64_t> known_bad;  ///< sorted; not read again
};

// `batch` numbers the batches of the whole epoch; `batch_index` counts those that this loader makes of it, from
// first_batch on (its number is batch_at()). The batch with index b lives in buffer b % ring. Workers take
// rows one after the other from next_row_index: row index k is row k % batch_size of the batch with index
// k / batch_size. A worker waits until that batch's buffer is free, then writes the row. Batches become ready in any
// order and are handed over in order.
struct Loader::Impl {
  Impl(std::shared_ptr<const Source> source_given, TransformPlan plan_given, LoaderSettings settings_given);
  ~Impl();

  void check_settings() const;
  int64_t batches_per_epoch() const;
  int64_t own_batches() const {
    return settings.own_batches ? static_cast<int64_t>(settings.own_batches->size()) : batches_per_epoch();
  }
  /// Which batch of the epoch it is.
  int64_t batch_at(int64_t batch_index) const {
    const int64_t own = epoch.first_batch + batch_index;
    return settings.own_batches ? (*settings.own_batches)[static_cast<size_t>(own)] : own;
  }
  int64_t images_in_batch(int64_t batch) const;
  int64_t images_in_batch_at(int64_t batch_index) const { return images_in_batch(batch_at(batch_index)); }
  int64_t may_hold() const { return held_batches(settings.prefetch_factor); }
  BatchBuffer& buffer_of(int64_t batch_index) { return buffers[static_cast<size_t>(batch_index) % buffers.size()]; }
  void allocate(BatchBuffer& buffer) const;
  /// Whether the batch is decoded and not yet given back.
  bool is_filled(int64_t batch_index) const STOKER_REQUIRES(mutex) {
    return filled[static_cast<size_t>(batch_index) % filled.size()];
  }
  void set_filled(int64_t batch_index, bool is_filled) STOKER_REQUIRES(mutex) {
    filled[static_cast<size_t>(batch_index) % filled.size()] = is_filled;
  }
  void prepare(int64_t batch_index) STOKER_REQUIRES(mutex);

  void start_workers();
  void worker_main(int worker);
  void work_on_epoch(SampleReader& reader, StageRecord& record);
  bool wait_until_free(int64_t batch_index);
  void fill_row(SampleReader& reader, StageRecord& record, int64_t batch_index, int64_t row);
  void add_times(StageRecord& record, const StageTimes& times);
  void finish_row(int64_t batch_index);
  void cancel_epoch() STOKER_REQUIRES(mutex);

  void begin_epoch(int64_t number, int64_t first_batch);
  bool next(HostBatch& batch, bool may_stop);
  void fill_batch_here(int64_t batch_index, bool may_stop);
  void wait_until_ready(int64_t batch_index, bool may_stop);
  void resolve_row_errors(int64_t batch_index);
  void record_repairs(const BatchBuffer& buffer) STOKER_REQUIRES(mutex);
  void record_bad(int64_t sample, const std::string& reason) STOKER_REQUIRES(mutex);
  void add_bad(const BadSample& entry) STOKER_REQUIRES(mutex);
  void release(const HostBatch& batch);
  bool is_ready() const;
  int64_t ready_batches() const STOKER_REQUIRES(mutex);
  LoaderStats stats() const;
  SampleTimes sample_times() const;

  const std::shared_ptr<const Source> source;
  const TransformPlan plan;
  const LoaderSettings settings;
  const int64_t samples;
  std::vector<std::vector<uint32_t>> classes;  ///< their samples, when balanced

  mutable core::Mutex mutex;
  core::Condition epoch_begun, buffer_freed, batch_ready, workers_idle;
  mutable std::vector<std::thread> threads;
  std::vector<BatchBuffer> buffers;                           ///< who may touch one: see BatchBuffer
  std::vector<bool> filled STOKER_GUARDED_BY(mutex);          ///< by buffer: is_filled()
  std::vector<StageRecord> records;                           ///< one per worker, or one for the calling thread
  EpochOrder epoch;                                           ///< written while no worker is active
  std::map<int64_t, BadSample> bad STOKER_GUARDED_BY(mutex);  ///< by sample
  std::set<int64_t> repaired STOKER_GUARDED_BY(mutex);        ///< samples
  uint64_t generation STOKER_GUARDED_BY(mutex) = 0;           ///< counts begin_epoch calls
  int active_workers STOKER_GUARDED_BY(mutex) = 0;
  bool quitting STOKER_GUARDED_BY(mutex) = false;
  std::atomic<bool> cancelled{false};
  std::atomic<int64_t> next_row_index{0};
  std::atomic<int64_t> batches_handed_over{0}, batches_released{0};  ///< written by the consumer
  int64_t last_awaited_batch = -1;         ///< index that next() has waited for; of the consumer
  std::optional<SampleReader> own_reader;  ///< reader of the calling thread when there are no workers

  std::atomic<int64_t> images_out{0}, bad_out{0}, consumer_wait_ns{0}, read_ns{0}, decode_ns{0}, resize_ns{0},
      augment_ns{0}, write_ns{0}, idle_ns{0}, requested{0}, ready_when_requested{0}, empty_when_requested{0};
};

}  // namespace stoker::data
