// SPDX-License-Identifier: Apache-2.0
// What a run uses of the machine at one moment, or over a window of such moments, as values. Knows neither where the
// figures come from nor who shows them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "observe/resources/nvml.h"

namespace stoker::observe {

/// What cannot be known is absent, never 0.
struct ResourceReading {
  GpuReading gpu;
  std::optional<double> cpu_percent;          ///< this process, of all CPUs that it may use
  std::optional<double> machine_cpu_percent;  ///< all processes, of all CPUs of the machine
  std::optional<double> other_cpus;           ///< of the CPUs that it may use, how many other processes kept busy
  std::optional<double> threads_without_cpu;  ///< of this process: ready to run, but waiting for a CPU
  std::optional<double> involuntary_switches_per_second;  ///< a thread had to give its CPU away
  std::optional<double> ram_used_bytes;                   ///< of the cgroup or the machine, see core::MemoryUse
  std::optional<double> ram_limit_bytes;
  std::optional<double> resident_bytes;                                   ///< this process
  std::optional<double> read_bytes_per_second, written_bytes_per_second;  ///< this process, from and to storage
};

/// Gathers readings: percents, power and rates become means; memory and temperature their highest; of the reasons for
/// low clocks every one that was seen. A figure that is absent in one reading is taken from the others.
class ResourceWindow {
 public:
  void add(const ResourceReading& reading);
  bool is_empty() const { return tallies_.empty(); }
  ResourceReading summary() const;

 private:
  struct Tally {
    double sum = 0, highest = 0;
    int64_t count = 0;
  };
  std::vector<Tally> tallies_;  ///< one per figure; empty before the first reading
  std::optional<uint64_t> clock_reasons_;
};

/// The four figures of the live line, each "n/a" where unknown: "GPU: 85%", "VRAM:12.3/24.0GB(51.2%)",
/// "CPU: 45.2%", "RAM:18.4/64.0GB(28.8%)".
struct ResourceTexts {
  std::string gpu, vram, cpu, ram;
  std::string slowed;  ///< "GPU slowed by heat", or empty
};
ResourceTexts resource_texts(const ResourceReading& reading);
/// All of them, joined: "GPU: 85% | VRAM:12.3/24.0GB(51.2%) | CPU: 45.2% | RAM:18.4/64.0GB(28.8%)".
std::string resource_text(const ResourceReading& reading);
/// As an object with the names and units of docs/run-directory.md; null where unknown.
core::Json resource_json(const ResourceReading& reading);

}  // namespace stoker::observe
