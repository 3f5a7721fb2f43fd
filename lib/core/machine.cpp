// SPDX-License-Identifier: Apache-2.0
#include "core/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
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

int64_t cgroup_memory_bytes() {
  int64_t bytes = 0;
  for (const std::string& folder : cgroup_folders("memory")) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      const int64_t limit = std::atoll(first_line(folder + name).c_str());
      constexpr int64_t kUnlimited = int64_t{1} << 60;
      if (limit > 0 && limit < kUnlimited) bytes = bytes == 0 ? limit : std::min(bytes, limit);
    }
  }
  return bytes;
}

int affinity_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

bool cpu_has_flag(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) == 0) return (line + " ").find(" " + flag + " ") != std::string::npos;
  }
  return false;
}

}  // namespace

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
  if (const int64_t limit = cgroup_memory_bytes(); limit > 0) {
    facts.ram_bytes = std::min(facts.ram_bytes, limit);
    facts.ram_available_bytes = std::min(facts.ram_available_bytes, limit);
  }
  facts.avx2 = cpu_has_flag("avx2");
  facts.avx512 = cpu_has_flag("avx512f");
  facts.native_bfloat16 = cpu_has_flag("avx512_bf16") || cpu_has_flag("amx_bf16");
  return facts;
}

ProcessMemory read_process_memory() {
  return {proc_kilobytes("/proc/self/status", "VmRSS"), proc_kilobytes("/proc/self/status", "VmHWM")};
}

double read_process_cpu_seconds() {
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace stoker::core
