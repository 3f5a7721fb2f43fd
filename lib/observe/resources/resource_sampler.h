// SPDX-License-Identifier: Apache-2.0
// Reads what the run uses once a second, on a thread of its own. Reads /proc, cgroups and NVML; independent of
// training.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/system/machine.h"
#include "engine/run/events.h"
#include "observe/resources/nvml.h"
#include "observe/resources/resources.h"

namespace stoker::observe {

/// Counters of the kernel at one moment; what is not available is absent.
struct ProcessCounters {
  double seconds = 0;      ///< time by the steady clock
  double cpu_seconds = 0;  ///< CPU time of this process
  std::optional<core::MachineCpuSeconds> machine;
  std::optional<core::MachineCpuSeconds> allowed;  ///< the CPUs that this process may use
  std::optional<core::StorageTraffic> traffic;
  std::optional<core::RunDelay> delay;
  int64_t involuntary_switches = 0;
};
ProcessCounters read_process_counters();

/// Sets the rates of `reading` from two moments of a process that may use `cpus` CPUs. Less than 0.1 s apart, all of
/// them stay absent.
void set_rates(ResourceReading& reading, const ProcessCounters& before, const ProcessCounters& now, int cpus);

/// Turns counters of the kernel into rates since the reading before. One thread.
class ProcessMeter {
 public:
  ProcessMeter();
  /// Everything but the GPU. Rates are absent when less than 0.1 s went by since the last rates.
  ResourceReading read();

 private:
  ProcessCounters last_;
  int cpus_;
};

/// Sums up what was used since a report and since an epoch. All is safe from any thread. The destructor joins.
class ResourceSampler {
 public:
  struct Settings {
    std::vector<std::string> gpu_names;  ///< as for Nvml::read(); empty: no GPU is used
    std::string nvml_library = Nvml::kLibrary;
    std::chrono::milliseconds period{1000};
  };
  using Callback = std::function<void(const ResourceReading&)>;

  /// The thread takes no signals: those of the program stay with its main thread.
  explicit ResourceSampler(Settings settings);
  ~ResourceSampler();
  ResourceSampler& operator=(ResourceSampler&&) = delete;  // not copied, not moved

  /// Called on the sampling thread after every reading; must not throw. When this returns, the callback before it has
  /// been called for the last time; an empty one ends it.
  void set_callback(Callback callback);

  ResourceReading latest() const;
  /// Since the last call; the latest reading when none fell in between. Each call begins the next window.
  ResourceReading since_report();
  ResourceReading since_epoch();

 private:
  void run();
  ResourceReading close(ResourceWindow& window);

  const Settings settings_;
  std::mutex callback_mutex_;
  Callback callback_;
  mutable std::mutex mutex_;  ///< guards all that follows
  std::condition_variable wake_;
  bool stopping_ = false;
  ResourceReading latest_;
  ResourceWindow report_window_, epoch_window_;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace stoker::observe
