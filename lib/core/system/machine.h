// SPDX-License-Identifier: Apache-2.0
// The resources of this process: CPUs by affinity and cgroup, memory by cgroup, SIMD level.
// Torch-free; the engine fills in the facts about accelerators and LibTorch.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker::core {

std::string host_name();

struct AcceleratorFacts {
  std::string name;  ///< "NVIDIA H200"
  int64_t memory_bytes = 0;
  bool native_bfloat16 = false;      ///< compute capability 8.0 or newer
  std::string compute_capability{};  ///< "9.0"; empty: unknown
};

struct Accelerators {
  std::vector<AcceleratorFacts> devices;
  std::string failure{};  ///< why there are none although the machine has a driver for them; empty: all is well
  std::string absence{};  ///< why there are none, where nothing is wrong: "there is no NVIDIA driver here"
};

struct MachineFacts {
  int cpus = 1;             ///< usable at once: min(affinity, cgroup quota rounded up)
  std::string cpus_reason;  ///< "2 by affinity, no cgroup limit"
  std::string cpu_model;    ///< "AMD EPYC 9R14"; empty where the kernel does not report it
  int64_t ram_bytes = 0;    ///< min(physical, cgroup limit)
  int64_t ram_available_bytes =
      0;  ///< what can be taken now: without swapping, and of each cgroup's limit what is left
  bool avx2 = false;
  bool avx512 = false;
  bool native_bfloat16 = false;   ///< AVX512-BF16 or AMX-BF16, unless ONEDNN_MAX_CPU_ISA forbids it
  bool computes_float16 = false;  ///< the CPU does, in this LibTorch
  std::vector<AcceleratorFacts> accelerators;
  std::string accelerator_failure{};  ///< as in Accelerators
  std::string accelerator_absence{};  ///< as in Accelerators
  int local_rank = 0;                 ///< rank of this process among those of its run on this machine
  int local_ranks = 0;                ///< how many these are; 0: it is not one of several
};

/// Reads /proc, /sys/fs/cgroup (v1 and v2), sched_getaffinity and CPUID. Never throws: what is unknown stays 0.
MachineFacts read_machine_facts();

/// The rest of the tightest memory limit among cgroups, given by their folders in /sys/fs/cgroup: limit less what
/// the group uses and cannot drop. Nothing where none has a limit.
std::optional<int64_t> cgroup_memory_left(const std::vector<std::string>& folders);

struct ProcessMemory {
  int64_t resident_bytes = 0;
  int64_t peak_resident_bytes = 0;
};
ProcessMemory read_process_memory();
/// User plus system CPU seconds of this process so far.
double read_process_cpu_seconds();
/// CPU seconds of the calling thread so far.
double read_thread_cpu_seconds();

/// Bytes that are allocated and not yet freed, of which a leak shows every one: resident memory also jumps by the gaps
/// that the allocator leaves. Nothing where the C library does not count.
std::optional<int64_t> read_allocated_bytes();

/// Memory that cannot be given back, and what it may become before the kernel kills.
struct MemoryUse {
  int64_t used_bytes =
      0;  ///< memory use of the cgroup, less file pages that can be dropped; of the machine without a cgroup limit
  int64_t limit_bytes = 0;  ///< the tightest cgroup limit, else the machine's memory
};
std::optional<MemoryUse> read_memory_use();

/// Since the process began; bytes that the page cache served do not count.
struct StorageTraffic {
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
};
std::optional<StorageTraffic> read_storage_traffic();

/// Seconds of all CPUs of the machine together, all processes, since it was started.
struct MachineCpuSeconds {
  double busy = 0;
  double total = 0;  ///< busy and idle
};
std::optional<MachineCpuSeconds> read_machine_cpu_seconds();
/// The CPUs that this process may use by affinity, ascending; empty where the system does not report them.
std::vector<int> allowed_cpus();
/// Seconds of the CPUs that this process may use by affinity: less its own, what other processes take from it.
std::optional<MachineCpuSeconds> read_allowed_cpu_seconds();

/// Seconds in which living threads of this process were ready to run and had no CPU, summed up; their number.
struct RunDelay {
  double seconds = 0;
  int threads = 0;
};
std::optional<RunDelay> read_run_delay();
/// How often the kernel took a CPU away from a thread of this process so far.
int64_t read_involuntary_switches();

// A bound on what this process may allocate, so that too much of it is an error and not the end of the process by
// the kernel's hand.

/// While it lives, this process cannot allocate more than the machine has free now: std::bad_alloc, or what a
/// library makes of ENOMEM. Sets RLIMIT_DATA of the whole process; one at a time. Where the machine does not report how
/// much is free there is no bound. Not for processes with a device at work: drivers reserve without using.
class MemoryLimit {
 public:
  MemoryLimit();
  ~MemoryLimit();
  MemoryLimit& operator=(MemoryLimit&&) = delete;  // not copied, not moved

 private:
  rlimit before_{};
  bool active_ = false;
};

}  // namespace stoker::core
