// SPDX-License-Identifier: Apache-2.0
#include "core/system/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/format.h"

namespace stoker::core {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "Name:   123 kB" of /proc files, in bytes; 0 when absent.
int64_t proc_kilobytes(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::atoll(line.c_str() + name.size() + 1) * 1024;
  }
  return 0;
}

/// The folders of our cgroup from the leaf up to the root, v2 first, then the v1 controller.
std::vector<std::string> cgroup_folders(const std::string& v1_controller) {
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find("," + v1_controller + ",") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + v1_controller;
    for (std::string path = line.substr(second + 1);; path.resize(path.find_last_of('/'))) {
      folders.push_back(root + path);
      if (path.empty() || path.find_last_of('/') == std::string::npos) break;
    }
  }
  return folders;
}

/// CPUs that the cgroup's quota allows, 0 when unlimited: the tightest limit from leaf to root.
double cgroup_cpus() {
  double cpus = 0;
  const auto tighten = [&](double quota, double period) {
    if (quota > 0 && period > 0) cpus = cpus == 0 ? quota / period : std::min(cpus, quota / period);
  };
  for (const std::string& folder : cgroup_folders("cpu")) {
    std::istringstream v2(first_line(folder + "/cpu.max"));
    double quota = 0, period = 0;
    if (v2 >> quota >> period) tighten(quota, period);
    tighten(std::atof(first_line(folder + "/cpu.cfs_quota_us").c_str()),
            std::atof(first_line(folder + "/cpu.cfs_period_us").c_str()));
  }
  return cpus;
}

/// "name 123" of a cgroup's or a process's statistics file; nothing when absent.
std::optional<int64_t> field_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) == 0) return std::atoll(line.c_str() + name.size());
  }
  return std::nullopt;
}

/// Memory that a cgroup cannot give back, without file pages that it can drop; nothing when the folder has no such
/// files.
std::optional<int64_t> used_in_cgroup(const std::string& folder) {
  for (const auto& [current, inactive] :
       {std::pair("/memory.current", "inactive_file "), std::pair("/memory.usage_in_bytes", "total_inactive_file ")}) {
    const int64_t bytes = std::atoll(first_line(folder + current).c_str());
    if (bytes <= 0) continue;
    return std::max<int64_t>(0, bytes - field_of(folder + "/memory.stat", inactive).value_or(0));
  }
  return std::nullopt;
}

/// The memory limit of the cgroup in `folder`, 0 when unlimited or unknown.
int64_t limit_of_cgroup(const std::string& folder) {
  constexpr int64_t kUnlimited = int64_t{1} << 60;
  for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
    const int64_t limit = std::atoll(first_line(folder + name).c_str());
    if (limit > 0 && limit < kUnlimited) return limit;
  }
  return 0;
}

struct CgroupMemory {
  int64_t limit_bytes = 0;  ///< 0: unlimited
  std::string folder;       ///< that sets the limit
};

/// The tightest limit from leaf to root.
CgroupMemory cgroup_memory() {
  CgroupMemory tightest;
  for (const std::string& folder : cgroup_folders("memory")) {
    const int64_t limit = limit_of_cgroup(folder);
    if (limit > 0 && (tightest.limit_bytes == 0 || limit < tightest.limit_bytes)) tightest = {limit, folder};
  }
  return tightest;
}

int affinity_cpus() {
  const auto allowed = static_cast<int>(allowed_cpus().size());
  return allowed > 0 ? allowed : static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

/// The value of "name   : " in the first processor's block of /proc/cpuinfo.
std::string cpuinfo_field(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind(name, 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

/// oneDNN takes no instructions beyond those that its environment variable names; in bfloat16 it then computes by
/// emulation, or not at all.
bool onednn_may_use_bfloat16() {
  const char* const limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  const char* const older_name = std::getenv("DNNL_MAX_CPU_ISA");
  const std::string isa = limit ? limit : older_name ? older_name : "";
  for (const char* without : {"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_MIC"}) {
    if (isa == without) return false;
  }
  return true;
}

}  // namespace

std::optional<int64_t> cgroup_memory_left(const std::vector<std::string>& folders) {
  std::optional<int64_t> least;
  for (const std::string& folder : folders) {
    const int64_t limit = limit_of_cgroup(folder);
    if (limit <= 0) continue;
    const int64_t left = std::max<int64_t>(0, limit - used_in_cgroup(folder).value_or(0));
    least = std::min(least.value_or(left), left);
  }
  return least;
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// Bytes that `ulimit -v` leaves this process; nothing: no limit, or not known.
static std::optional<int64_t> address_space_left() {
  rlimit limit{};
  const int64_t used = proc_kilobytes("/proc/self/status", "VmSize");
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || used <= 0) return std::nullopt;
  return std::max<int64_t>(1, static_cast<int64_t>(limit.rlim_cur) - used);  // 0 would be unknown
}

MachineFacts read_machine_facts() {
  MachineFacts facts;
  const int by_affinity = affinity_cpus();
  const double by_cgroup = cgroup_cpus();
  facts.cpus = by_affinity;
  facts.cpus_reason = format("{} by affinity, no cgroup limit", by_affinity);
  if (by_cgroup > 0) {
    facts.cpus = std::max(1, std::min(by_affinity, static_cast<int>(std::ceil(by_cgroup))));
    facts.cpus_reason = format("{} by affinity, {:.1f} by cgroup", by_affinity, by_cgroup);
  }
  facts.ram_bytes = proc_kilobytes("/proc/meminfo", "MemTotal");
  facts.ram_available_bytes = proc_kilobytes("/proc/meminfo", "MemAvailable");
  if (const int64_t limit = cgroup_memory().limit_bytes; limit > 0) {
    facts.ram_bytes = std::min(facts.ram_bytes, limit);
  }
  if (const auto left = cgroup_memory_left(cgroup_folders("memory"))) {
    facts.ram_available_bytes = std::min(facts.ram_available_bytes, *left);
  }
  if (const auto left = address_space_left()) {
    facts.ram_available_bytes = std::min(facts.ram_available_bytes, *left);
  }
  facts.cpu_model = cpuinfo_field("model name");
  const std::string flags = " " + cpuinfo_field("flags") + " ";
  const auto has = [&](const char* flag) { return flags.find(format(" {} ", flag)) != std::string::npos; };
  facts.avx2 = has("avx2");
  facts.avx512 = has("avx512f");
  facts.native_bfloat16 = (has("avx512_bf16") || has("amx_bf16")) && onednn_may_use_bfloat16();
  return facts;
}

ProcessMemory read_process_memory() {
  return {proc_kilobytes("/proc/self/status", "VmRSS"), proc_kilobytes("/proc/self/status", "VmHWM")};
}

std::optional<int64_t> read_allocated_bytes() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
#else
  return std::nullopt;
#endif
}

double read_process_cpu_seconds() {
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double read_thread_cpu_seconds() {
  timespec time{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::optional<MemoryUse> read_memory_use() {
  const CgroupMemory cgroup = cgroup_memory();
  const int64_t machine = proc_kilobytes("/proc/meminfo", "MemTotal");
  if (cgroup.limit_bytes > 0 && (machine == 0 || cgroup.limit_bytes < machine)) {
    const auto used = used_in_cgroup(cgroup.folder);
    if (!used) return std::nullopt;
    return MemoryUse{*used, cgroup.limit_bytes};
  }
  const int64_t available = proc_kilobytes("/proc/meminfo", "MemAvailable");
  if (machine <= 0 || available <= 0) return std::nullopt;
  return MemoryUse{machine - available, machine};
}

std::optional<StorageTraffic> read_storage_traffic() {
  const auto read = field_of("/proc/self/io", "read_bytes: "), written = field_of("/proc/self/io", "write_bytes: ");
  if (!read || !written) return std::nullopt;
  return StorageTraffic{*read, *written};
}

namespace {

/// Adds a line of /proc/stat without its name: user nice system idle iowait irq softirq steal ...; steal is time that
/// the host gave to others: busy.
bool add_cpu_line(std::istringstream& line, MachineCpuSeconds& seconds) {
  const double tick_seconds = 1.0 / static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  int column = 0;
  for (double ticks = 0; column < 8 && line >> ticks; ++column) {
    seconds.total += ticks * tick_seconds;
    const bool idle = column == 3 || column == 4;
    if (!idle) seconds.busy += ticks * tick_seconds;
  }
  return column >= 4;
}

}  // namespace

std::optional<MachineCpuSeconds> read_machine_cpu_seconds() {
  std::istringstream line(first_line("/proc/stat"));
  std::string name;
  MachineCpuSeconds seconds;
  if (!(line >> name) || name != "cpu" || !add_cpu_line(line, seconds)) return std::nullopt;
  return seconds;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::optional<MachineCpuSeconds> read_allowed_cpu_seconds() {
  const std::vector<int> allowed = allowed_cpus();
  std::ifstream file("/proc/stat");
  MachineCpuSeconds seconds;
  bool found = false;
  for (std::string text; std::getline(file, text) && text.rfind("cpu", 0) == 0;) {
    std::istringstream line(text.substr(3));
    int cpu = -1;
    if (text.rfind("cpu ", 0) == 0 || !(line >> cpu)) continue;
    if (!std::binary_search(allowed.begin(), allowed.end(), cpu)) continue;
    found = add_cpu_line(line, seconds) || found;
  }
  if (!found) return std::nullopt;
  return seconds;
}

std::optional<RunDelay> read_run_delay() {
  RunDelay delay;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    // Nanoseconds on a CPU, nanoseconds of waiting for one, time slices; see Documentation/scheduler/sched-stats.
    std::istringstream line(first_line(entry.path().string() + "/schedstat"));
    double ran = 0, waited = 0;
    if (!(line >> ran >> waited)) continue;
    delay.seconds += 1e-9 * waited;
    ++delay.threads;
  }
  if (delay.threads == 0) return std::nullopt;
  return delay;
}

int64_t read_involuntary_switches() {
  struct rusage usage {};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

namespace {

/// Private writable memory of this process, which is what RLIMIT_DATA counts; 0 when unknown.
rlim_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmData:", 0) == 0) return static_cast<rlim_t>(std::stoull(line.substr(7))) * 1024;
  }
  return 0;
}

}  // namespace

MemoryLimit::MemoryLimit() {
  const int64_t available = read_machine_facts().ram_available_bytes;
  const rlim_t used = data_bytes();
  if (available <= 0 || used == 0 || ::getrlimit(RLIMIT_DATA, &before_) != 0) return;
  rlimit bound = before_;
  bound.rlim_cur = used + static_cast<rlim_t>(available);
  if (bound.rlim_cur >= before_.rlim_cur) return;  // RLIM_INFINITY is the largest value
  active_ = ::setrlimit(RLIMIT_DATA, &bound) == 0;
}

MemoryLimit::~MemoryLimit() {
  if (active_) ::setrlimit(RLIMIT_DATA, &before_);
}

}  // namespace stoker::core
