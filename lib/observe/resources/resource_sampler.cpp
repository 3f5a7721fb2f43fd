// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/resource_sampler.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace stoker::observe {
namespace {

constexpr double kLeastSeconds = 0.1;  // rates over less are noise

std::thread thread_without_signals(const std::function<void()>& body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread starts with its maker's mask
  std::thread thread(body);
  ::pthread_setname_np(thread.native_handle(), "resources");  // for top -H and debuggers
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

ProcessMeter::ProcessMeter()
    : last_time_(Clock::now()),
      last_cpu_seconds_(core::read_process_cpu_seconds()),
      last_machine_(core::read_machine_cpu_seconds()),
      last_allowed_(core::read_allowed_cpu_seconds()),
      last_traffic_(core::read_storage_traffic()),
      last_delay_(core::read_run_delay()),
      last_switches_(core::read_involuntary_switches()),
      cpus_(core::read_machine_facts().cpus) {}

ResourceReading ProcessMeter::read() {
  ResourceReading reading;
  if (const auto memory = core::read_memory_use()) {
    reading.ram_used_bytes = static_cast<double>(memory->used_bytes);
    reading.ram_limit_bytes = static_cast<double>(memory->limit_bytes);
  }
  const int64_t resident = core::read_process_memory().resident_bytes;
  if (resident > 0) reading.resident_bytes = static_cast<double>(resident);

  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last_time_).count();
  if (seconds < kLeastSeconds) return reading;
  const double cpu_seconds = core::read_process_cpu_seconds();
  reading.cpu_percent = std::clamp(100 * (cpu_seconds - last_cpu_seconds_) / (seconds * cpus_), 0.0, 100.0);
  const auto machine = core::read_machine_cpu_seconds();
  if (machine && last_machine_ && machine->total > last_machine_->total) {
    const double share = (machine->busy - last_machine_->busy) / (machine->total - last_machine_->total);
    reading.machine_cpu_percent = std::clamp(100 * share, 0.0, 100.0);
  }
  const auto allowed = core::read_allowed_cpu_seconds();
  if (allowed && last_allowed_) {
    reading.other_cpus = std::clamp((allowed->busy - last_allowed_->busy - (cpu_seconds - last_cpu_seconds_)) / seconds,
                                    0.0, 1.0 * cpus_);
  }
  const auto delay = core::read_run_delay();
  if (delay && last_delay_) {  // less than before when a thread has ended
    reading.threads_without_cpu = std::max(0.0, (delay->seconds - last_delay_->seconds) / seconds);
  }
  const int64_t switches = core::read_involuntary_switches();
  reading.involuntary_switches_per_second = static_cast<double>(switches - last_switches_) / seconds;
  const auto traffic = core::read_storage_traffic();
  if (traffic && last_traffic_) {
    reading.read_bytes_per_second = static_cast<double>(traffic->read_bytes - last_traffic_->read_bytes) / seconds;
    reading.written_bytes_per_second =
        static_cast<double>(traffic->written_bytes - last_traffic_->written_bytes) / seconds;
  }
  last_time_ = now;
  last_cpu_seconds_ = cpu_seconds;
  last_machine_ = machine;
  last_allowed_ = allowed;
  last_traffic_ = traffic;
  last_delay_ = delay;
  last_switches_ = switches;
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

void ResourceSampler::listen(Listener listener) {
  const std::lock_guard<std::mutex> lock(listener_mutex_);
  listener_ = std::move(listener);
}

void ResourceSampler::run() {
  ProcessMeter meter;
  std::optional<Nvml> nvml;
  if (!settings_.gpu_pci_bus_id.empty()) nvml.emplace(settings_.nvml_library);
  for (;;) {
    ResourceReading reading = meter.read();
    if (nvml) reading.gpu = nvml->read(settings_.gpu_pci_bus_id);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      latest_ = reading;
      report_window_.add(reading);
      epoch_window_.add(reading);
    }
    {
      const std::lock_guard<std::mutex> lock(listener_mutex_);
      if (listener_) listener_(reading);
    }
    std::unique_lock<std::mutex> lock(mutex_);
    if (wake_.wait_for(lock, settings_.period, [this] { return stopping_; })) return;
  }
}

ResourceReading ResourceSampler::latest() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return latest_;
}

ResourceReading ResourceSampler::last_report() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return report_;
}

ResourceReading ResourceSampler::last_epoch() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return epoch_;
}

void ResourceSampler::on_report(const engine::ReportEvent&) {
  const std::lock_guard<std::mutex> lock(mutex_);
  report_ = close(report_window_);
}

void ResourceSampler::on_epoch(const engine::EpochEvent&) {
  const std::lock_guard<std::mutex> lock(mutex_);
  epoch_ = close(epoch_window_);
}

ResourceReading ResourceSampler::close(ResourceWindow& window) {
  return window.is_empty() ? latest_ : std::exchange(window, {}).summary();
}

}  // namespace stoker::observe
