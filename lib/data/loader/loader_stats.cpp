// SPDX-License-Identifier: Apache-2.0
// Statistics of the loader.
#include "data/loader/loader_stats.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>

#include "data/loader/loader_impl.h"

namespace stoker::data {
namespace {

double cpu_seconds_of(pthread_t thread) {
  clockid_t clock{};
  timespec time{};
  if (::pthread_getcpuclockid(thread, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

bool Loader::Impl::is_ready() const {
  const int64_t batch_index = batches_handed_over.load();
  const core::MutexLock lock(mutex);
  return settings.num_workers > 0 && batch_index < epoch.batches &&
         batch_index - batches_released.load() < may_hold() && is_filled(batch_index);
}

LoaderStats Loader::Impl::stats() const {
  constexpr double kSecond = 1e-9;
  LoaderStats result;
  result.images = images_out.load();
  result.bad_images = bad_out.load();
  result.consumer_wait_seconds = kSecond * static_cast<double>(consumer_wait_ns.load());
  result.read_seconds = kSecond * static_cast<double>(read_ns.load());
  result.decode_seconds = kSecond * static_cast<double>(decode_ns.load());
  result.augment_seconds = kSecond * static_cast<double>(augment_ns.load());
  result.resize_seconds = kSecond * static_cast<double>(resize_ns.load());
  result.write_seconds = kSecond * static_cast<double>(write_ns.load());
  result.worker_idle_seconds = kSecond * static_cast<double>(idle_ns.load());
  result.batches_capacity = static_cast<int64_t>(buffers.size());
  result.num_workers = static_cast<int>(settings.num_workers);
  result.cache_bytes = source->memory().cached_bytes;
  result.batches_requested = requested.load();
  result.ready_when_requested = ready_when_requested.load();
  result.empty_when_requested = empty_when_requested.load();
  for (std::thread& thread : threads) result.worker_cpu_seconds += cpu_seconds_of(thread.native_handle());
  const core::MutexLock lock(mutex);
  for (const BatchBuffer& buffer : buffers) {
    result.ring_bytes += buffer.bytes();
  }
  result.batches_ready = ready_batches();
  return result;
}

/// Decoded and not yet handed over.
int64_t Loader::Impl::ready_batches() const {
  const auto ring = static_cast<int64_t>(buffers.size());
  int64_t ready = 0;
  for (int64_t batch_index = batches_handed_over; batch_index < std::min(epoch.batches, batches_released.load() + ring);
       ++batch_index) {
    if (is_filled(batch_index)) ++ready;
  }
  return ready;
}

SampleTimes Loader::Impl::sample_times() const {
  SampleTimes sum;
  for (const StageRecord& record : records) record.add_to(sum);
  return sum;
}

LoaderStats Loader::stats() const { return impl_->stats(); }
double Loader::waited_seconds() const { return 1e-9 * static_cast<double>(impl_->consumer_wait_ns.load()); }
SampleTimes Loader::sample_times() const { return impl_->sample_times(); }

}  // namespace stoker::data
