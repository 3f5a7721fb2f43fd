// SPDX-License-Identifier: Apache-2.0
#include "core/system/memory_limit.h"

#include <fstream>
#include <string>

#include "core/system/machine.h"

namespace stoker::core {
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
