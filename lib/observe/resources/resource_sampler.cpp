// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/resource_sampler.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "core/crash/signal_stack.h"
#include "core/time/clock.h"

namespace stoker::observe {
namespace {

constexpr double kLeastSeconds = 0.1;  // rates over less are noise

std::thread thread_without_signals(const std::function<void()>& body) {
  const sigset_t held = core::all_but_faults();
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, &held, &before);  // a new thread starts with its maker's mask
  const auto restore_mask = [&] { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); };
  try {
    std::thread thread([body] {
      const core::SignalStack stack;
      body();
    });
    ::pthread_setname_np(thread.native_handle(), "resources");  // for top -H and debuggers
    restore_mask();
    return thread;
  } catch (...) {
    restore_mask();
    throw;
  }
}

}  // namespace

ProcessCounters read_process_counters() {
  ProcessCounters counters;
  counters.seconds = core::machine_clock().now();
  counters.cpu_seconds = core::read_process_cpu_seconds();
  counters.machine = core::read_machine_cpu_seconds();
  counters.allowed = core::read_allowed_cpu_seconds();
  counters.traffic = core::read_storage_traffic();
  counters.delay = core::read_run_delay();
  counters.involuntary_switches = core::read_involuntary_switches();
  return counters;
}

void set_rates(ResourceReading& reading, const ProcessCounters& before, const ProcessCounters& now, int cpus) {
  const double seconds = now.seconds - before.seconds;
  if (seconds < kLeastSeconds) return;
  const double cpu_seconds = now.cpu_seconds - before.cpu_seconds;
  reading.cpu_percent = std::clamp(100 * cpu_seconds / (seconds * cpus), 0.0, 100.0);
  if (now.machine && before.machine && now.machine->total > before.machine->total) {
    const double share = (now.machine->busy - before.machine->busy) / (now.machine->total - before.machine->total);
    reading.machine_cpu_percent = std::clamp(100 * share, 0.0, 100.0);
  }
  if (now.allowed && before.allowed) {
    const double others = now.allowed->busy - before.allowed->busy - cpu_seconds;
    reading.other_cpus = std::clamp(others / seconds, 0.0, 1.0 * cpus);
  }
  if (now.delay && before.delay) {  // less than before when a thread has ended
    reading.threads_without_cpu = std::max(0.0, (now.delay->seconds - before.delay->seconds) / seconds);
  }
  reading.involuntary_switches_per_second =
      static_cast<double>(now.involuntary_switches - before.involuntary_switches) / seconds;
  if (now.traffic && before.traffic) {
    const auto read = static_cast<double>(now.traffic->read_bytes - before.traffic->read_bytes);
    const auto written = static_cast<double>(now.traffic->written_bytes - before.traffic->written_bytes);
    reading.read_bytes_per_second = read / seconds;
    reading.written_bytes_per_second = written / seconds;
  }
}

ProcessMeter::ProcessMeter() : last_(read_process_counters()), cpus_(core::read_machine_facts().cpus) {}

ResourceReading ProcessMeter::read() {
  ResourceReading reading;
  if (const auto memory = core::read_memory_use()) {
    reading.ram_used_bytes = static_cast<double>(memory->used_bytes);
    reading.ram_limit_bytes = static_cast<double>(memory->limit_bytes);
  }
  const int64_t resident = core::read_process_memory().resident_bytes;
  if (resident > 0) reading.resident_bytes = static_cast<double>(resident);

  const ProcessCounters now = read_process_counters();
  set_rates(reading, last_, now, cpus_);
  if (reading.cpu_percent) last_ = now;
  return reading;
}

ResourceSampler::ResourceSampler(Settings settings)
    : settings_(std::move(settings)), thread_(thread_without_signals([this] { run(); })) {}

ResourceSampler::~ResourceSampler() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void ResourceSampler::set_callback(Callback callback) {
  const std::lock_guard<std::mutex> lock(callback_mutex_);
  callback_ = std::move(callback);
}

void ResourceSampler::run() {
  ProcessMeter meter;
  std::optional<Nvml> nvml;
  if (!settings_.gpu_names.empty()) nvml.emplace(settings_.nvml_library);
  for (;;) {
    ResourceReading reading = meter.read();
    if (nvml) reading.gpu = nvml->read(settings_.gpu_names);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      latest_ = reading;
      report_window_.add(reading);
      epoch_window_.add(reading);
    }
    {
      const std::lock_guard<std::mutex> lock(callback_mutex_);
      if (callback_) callback_(reading);
    }
    std::unique_lock<std::mutex> lock(mutex_);
    if (wake_.wait_for(lock, settings_.period, [this] { return stopping_; })) return;
  }
}

ResourceReading ResourceSampler::latest() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return latest_;
}

ResourceReading ResourceSampler::since_report() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return close(report_window_);
}

ResourceReading ResourceSampler::since_epoch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return close(epoch_window_);
}

ResourceReading ResourceSampler::close(ResourceWindow& window) {
  return window.is_empty() ? latest_ : std::exchange(window, {}).summary();
}

}  // namespace stoker::observe
