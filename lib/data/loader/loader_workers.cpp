// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

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
    // Where any number of images may be bad, one that this user may not read is another of them.
    const bool is_bad_image = error.kind() == core::ErrorKind::permission && settings.max_bad == config::kUnlimitedBad;
    if (is_bad_image) row_error.reason = std::strerror(EACCES);
    if (!is_bad_image) row_error.error = error;
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

namespace {

torch::ScalarType dtype_of(Element element) {
  return element == Element::uint8 ? torch::kUInt8 : element == Element::float16 ? torch::kFloat16 : torch::kFloat32;
}

/// [batch_size, (frames,) height, width, channels]; with two views [batch_size, 2, frames, height, width, channels]
std::vector<int64_t> sizes_of(int64_t batch_size, const SampleShape& shape) {
  if (shape.views > 1) {
    return {batch_size, shape.views, shape.images() / shape.views, shape.height, shape.width, shape.channels};
  }
  if (shape.frames == 0) return {batch_size, shape.height, shape.width, shape.channels};
  return {batch_size, shape.frames, shape.height, shape.width, shape.channels};
}

}  // namespace

void BatchBuffer::allocate(int64_t batch_size, const SampleShape& shape, int64_t targets_per_sample, bool pinned) {
  row_bytes = shape.bytes();
  num_targets = targets_per_sample;
  const auto memory = torch::TensorOptions().device(torch::kCPU).pinned_memory(pinned);
  try {
    images = torch::empty(sizes_of(batch_size, shape), memory.dtype(dtype_of(shape.element)));
    labels = torch::empty({batch_size}, memory.dtype(torch::kInt64));
    targets = torch::empty({batch_size, num_targets}, memory.dtype(torch::kFloat32));
  } catch (const c10::Error& error) {
    const std::string cause = error.what_without_backtrace();
    if (pinned && cause.find("out of memory") == std::string::npos) {
      throw core::Error(core::ErrorKind::os, "page-locked memory cannot be had: " + cause.substr(0, cause.find('\n')),
                        "check the driver with nvidia-smi, or use --no-pin-memory");
    }
    throw core::Error(core::ErrorKind::out_of_memory,
                      core::format("cannot allocate {}{} for a batch of images",
                                   core::bytes_text(static_cast<double>(batch_size * row_bytes)),
                                   pinned ? " of page-locked memory" : ""),
                      "use a smaller --batch-size (to evaluate: --val-batch-size), --prefetch-factor or --img-size, or "
                      "for clips fewer --clip-frames");
  }
  image_rows = static_cast<uint8_t*>(images.data_ptr());
  label_rows = labels.data_ptr<int64_t>();
  target_rows = targets.data_ptr<float>();
  samples.resize(static_cast<size_t>(batch_size));
}

int64_t BatchBuffer::bytes() const {
  return static_cast<int64_t>(samples.size()) *
         (row_bytes + int64_t{sizeof(int64_t)} + num_targets * int64_t{sizeof(float)});
}

void BatchBuffer::sort_row_errors() {
  std::sort(row_errors.begin(), row_errors.end(), [](const RowError& a, const RowError& b) { return a.row < b.row; });
  std::sort(repairs.begin(), repairs.end(), [](const RowRepair& a, const RowRepair& b) { return a.row < b.row; });
}

int64_t BatchBuffer::close_gaps(int64_t rows) {
  if (row_errors.empty()) return rows;
  int64_t kept = 0;
  auto gap = row_errors.begin();
  for (int64_t row = 0; row < rows; ++row) {
    if (gap != row_errors.end() && gap->row == row) {
      ++gap;
      continue;
    }
    if (kept != row) {
      std::memcpy(image_rows + kept * row_bytes, image_rows + row * row_bytes, static_cast<size_t>(row_bytes));
      label_rows[kept] = label_rows[row];
      std::copy_n(target_rows + row * num_targets, num_targets, target_rows + kept * num_targets);
      samples[static_cast<size_t>(kept)] = samples[static_cast<size_t>(row)];
    }
    ++kept;
  }
  return kept;
}

}  // namespace stoker::data
