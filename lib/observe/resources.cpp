// SPDX-License-Identifier: Apache-2.0
#include "observe/resources.h"

#include <algorithm>

#include "core/format.h"
#include "core/machine.h"

namespace stoker::observe {

ResourceMeter::ResourceMeter()
    : last_time_(std::chrono::steady_clock::now()), last_cpu_seconds_(core::read_process_cpu_seconds()) {
  const core::MachineFacts machine = core::read_machine_facts();
  cpus_ = machine.cpus;
  ram_bytes_ = static_cast<double>(machine.ram_bytes);
}

std::string ResourceMeter::text() {
  const auto now = std::chrono::steady_clock::now();
  const double cpu_seconds = core::read_process_cpu_seconds();
  const double wall_seconds = std::chrono::duration<double>(now - last_time_).count();
  std::string text = "CPU: n/a";
  if (wall_seconds > 0.01) {
    const double share = (cpu_seconds - last_cpu_seconds_) / (wall_seconds * cpus_);
    text = core::format("CPU: {:.1f}%", 100 * std::min(1.0, share));
  }
  last_time_ = now;
  last_cpu_seconds_ = cpu_seconds;
  const auto resident = static_cast<double>(core::read_process_memory().resident_bytes);
  if (resident <= 0 || ram_bytes_ <= 0) return text + " | RAM: n/a";
  return text + core::format(" | RAM:{:.1f}/{:.1f}GB({:.1f}%)", resident / 1e9, ram_bytes_ / 1e9, 100 * resident / ram_bytes_);
}

}  // namespace stoker::observe
