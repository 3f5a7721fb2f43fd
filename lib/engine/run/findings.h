// SPDX-License-Identifier: Apache-2.0
// What a run finds out about itself while it trains, as plain values that events carry to listeners: what it uses of
// the machine, and what limits it. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/rank_times.h"
#include "engine/run/step_times.h"

namespace stoker::engine {

/// One look at a GPU; what its driver or board does not report is absent.
struct GpuReading {
  std::optional<double> busy_percent;  ///< share of the driver's last sample period with a kernel running
  std::optional<double> memory_used_bytes, memory_total_bytes;  ///< of all processes
  std::optional<double> power_watts;
  std::optional<double> celsius;
  std::optional<double> clock_mhz, highest_clock_mhz;  ///< of the multiprocessors: now, and as the board allows
  std::optional<uint64_t> clock_reasons;               ///< NVML's bits: why the clocks are below their highest
};

/// What a run uses of the machine. What cannot be known is absent, never 0.
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

enum class Verdict {
  nothing,                 ///< nothing to gain
  storage,                 ///< input-bound: reading
  cold_cache,              ///< input-bound: reading for the first time
  decode,                  ///< input-bound: decoding
  augmentation,            ///< input-bound: resizing and augmenting
  workers,                 ///< input-bound: too few workers
  prefetch,                ///< input-bound in bursts: too few batches ahead
  contention,              ///< other processes use the CPUs
  competing_threads,       ///< another process holds a CPU that threads of the network wait for each other on
  oversubscribed_threads,  ///< more threads than CPUs
  copy,                    ///< copies to the device
  sync,                    ///< waiting for the device to report
  saving,                  ///< writing checkpoints
  launch,                  ///< fixed costs per update: the batch is too small
  exchange,                ///< ranks wait for the sums over all of them
  unequal_ranks,           ///< all ranks wait for the slowest
  throttled,               ///< the device's clocks are down
  device                   ///< the device computes all the time
};

/// What limits a run, and the one option to change.
struct Diagnosis {
  Verdict verdict = Verdict::nothing;
  std::vector<std::string> evidence;  ///< short facts with figures
  std::string option;                 ///< "--num-workers"; "": none helps
  std::string value;                  ///< "4"
  std::string advice;                 ///< "--num-workers 4", or what to do where no option helps
  double gain_percent = 0;            ///< more images per second; >= 0
};

/// Where a run stands between two updates, when it is examined; see engine/loop/between_updates.h.
struct Interlude {
  enum class After { report_interval, epoch };
  After after = After::report_interval;
  int64_t epoch = 0;             ///< 0-based: under way, or just ended
  bool is_first_epoch = false;   ///< of this process
  int64_t epochs_left = 0;       ///< after this one
  StepTimings times;             ///< of a window that is long enough to judge by; else without updates
  std::vector<RankTimes> ranks;  ///< of about the same window; empty where this rank is alone
  double seconds_allowed = 0;    ///< for using the learner; 0 or less: not at all, as after a stop request
};

struct Findings {
  std::optional<ResourceReading> resources;  ///< means and maxima since the last event of the same kind
  std::optional<Diagnosis> diagnosis;        ///< of the last window that was long enough; absent before the first
};

}  // namespace stoker::engine
