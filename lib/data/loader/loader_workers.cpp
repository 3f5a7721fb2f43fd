// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <new>

#include "core/crash/fault_signals.h"
#include "core/crash/signal_stack.h"
#include "core/error.h"
#include "core/format.h"
#include "core/time/instrumentation.h"
#include "data/loader/loader_impl.h"

namespace stoker::data {

void Loader::Impl::start_workers() {
  // Signals are for the main thread: its waits are what they should interrupt.
  const sigset_t held = core::all_but_faults();
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &held, &before);
  try {
    for (int worker = 0; worker < settings.num_workers; ++worker) {
      threads.emplace_back([this, worker] { worker_main(worker); });
    }
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    const size_t started = threads.size();
    {
      const core::MutexLock lock(mutex);
      quitting = true;
    }
    epoch_begun.notify_all();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    throw core::Error(
        core::ErrorKind::os,
        core::format("only {} of {} loader threads could be started: {}", started, settings.num_workers, error.what()),
        "use fewer --num-workers, or raise the limit on processes (ulimit -u)");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Loader::Impl::worker_main(int worker) {
  const core::SignalStack stack;
  ::prctl(PR_SET_NAME, core::format("loader-{}", worker).c_str(), 0, 0, 0);
  SampleReader reader(*source, plan, settings.limits, settings.seed, settings.stored);
  uint64_t seen = 0;
  for (;;) {
    {
      const core::MutexLock lock(mutex);
      while (!quitting && generation == seen) epoch_begun.wait(mutex);
      if (quitting) return;
      seen = generation;
      ++active_workers;
    }
    work_on_epoch(reader, records[static_cast<size_t>(worker)]);
    const core::MutexLock lock(mutex);
    if (--active_workers == 0) workers_idle.notify_all();
  }
}

void Loader::Impl::work_on_epoch(SampleReader& reader, StageRecord& record) {
  while (!cancelled.load(std::memory_order_relaxed)) {
    const int64_t row_index = next_row_index.fetch_add(1, std::memory_order_relaxed);
    const int64_t batch_index = row_index / settings.batch_size, row = row_index % settings.batch_size;
    if (batch_index >= epoch.batches) return;
    if (row >= images_in_batch_at(batch_index)) continue;  // of the short last batch
    if (!wait_until_free(batch_index)) return;
    fill_row(reader, record, batch_index, row);
    finish_row(batch_index);
  }
}

/// False when the epoch was cancelled.
bool Loader::Impl::wait_until_free(int64_t batch_index) {
  const auto ring = static_cast<int64_t>(buffers.size());
  if (batch_index < batches_released.load(std::memory_order_acquire) + ring) return true;
  const core::TraceScope trace("idle");
  const auto start = LoaderClock::now();
  const core::MutexLock lock(mutex);
  while (!cancelled.load() && batch_index >= batches_released.load() + ring) buffer_freed.wait(mutex);
  idle_ns += nanoseconds_since(start);
  return !cancelled.load();
}

void Loader::Impl::fill_row(SampleReader& reader, StageRecord& record, int64_t batch_index, int64_t row) {
  BatchBuffer& buffer = buffer_of(batch_index);
  const int64_t position = batch_at(batch_index) * settings.batch_size + row;
  const int64_t sample = epoch.order.empty() ? position : epoch.order[static_cast<size_t>(position)];
  const uint32_t round = epoch.rounds.empty() ? 0 : epoch.rounds[static_cast<size_t>(position)];
  buffer.samples[static_cast<size_t>(row)] = sample;
  buffer.label_rows[row] = source->label(sample);
  RowError row_error;
  row_error.row = row;
  StageTimes times;
  try {
    if (std::binary_search(epoch.known_bad.begin(), epoch.known_bad.end(), sample)) {
      row_error.reason = "known to be bad";
    } else {
      row_error.reason = reader.read_into(sample, epoch.epoch, round, buffer.image_rows + row * buffer.row_bytes,
                                          buffer.target_rows + row * buffer.num_targets, times);
    }
  } catch (const core::Error& error) {
    row_error.error = error;
  } catch (const std::bad_alloc&) {
    row_error.error.emplace(core::ErrorKind::out_of_memory,
                            "out of memory while decoding " + core::printable(source->name(sample)),
                            "use fewer --num-workers or a smaller --max-image-megapixels");
  } catch (const std::exception& error) {
    row_error.error.emplace(core::ErrorKind::bug,
                            core::format("while decoding {}: {}", core::printable(source->name(sample)), error.what()));
  }
  if (core::is_instrumented()) add_times(record, times);
  std::string repair = settings.limits.repair ? take_repair() : "";
  if (row_error.reason.empty() && !row_error.error && repair.empty()) return;
  const core::MutexLock lock(mutex);
  if (row_error.reason.empty() && !row_error.error) {
    buffer.repairs.push_back({row, std::move(repair)});
    return;
  }
  buffer.row_errors.push_back(std::move(row_error));
}

void Loader::Impl::add_times(StageRecord& record, const StageTimes& times) {
  read_ns.fetch_add(times.read, std::memory_order_relaxed);
  decode_ns.fetch_add(times.decode, std::memory_order_relaxed);
  augment_ns.fetch_add(times.augment, std::memory_order_relaxed);
  resize_ns.fetch_add(times.resize, std::memory_order_relaxed);
  write_ns.fetch_add(times.write, std::memory_order_relaxed);
  record.add(times);
}

void Loader::Impl::finish_row(int64_t batch_index) {
  BatchBuffer& buffer = buffer_of(batch_index);
  if (buffer.rows_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  {
    const core::MutexLock lock(mutex);
    set_filled(batch_index, true);
  }
  batch_ready.notify_one();
}

/// Returns once no worker touches the plan or a buffer, and none will before the lock is given up.
void Loader::Impl::cancel_epoch() {
  cancelled = true;
  buffer_freed.notify_all();
  while (active_workers != 0) workers_idle.wait(mutex);
}

}  // namespace stoker::data
