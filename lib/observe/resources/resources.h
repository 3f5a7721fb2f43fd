// SPDX-License-Identifier: Apache-2.0
// The resources that a run uses at one moment, or over a window, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "engine/run/events.h"

namespace stoker::observe {

using engine::GpuReading;

/// The reasons that slow a device down against its will: "power cap", "heat", "power brake", "hardware slowdown".
/// Idle clocks and clocks set by an administrator are none.
std::vector<std::string> slowdown_reasons(uint64_t clock_reasons);

using engine::ResourceReading;

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

/// The four figures of the live line, each empty where unknown: "GPU: 85%", "VRAM:12.3/24.0GB(51.2%)",
/// "CPU: 45.2%", "RAM:18.4/64.0GB(28.8%)".
struct ResourceTexts {
  std::string gpu, vram, cpu, ram;
  std::string slowed;  ///< "GPU slowed by heat", or empty
};
ResourceTexts resource_texts(const ResourceReading& reading);
/// All of them, joined: "GPU: 85% | VRAM:12.3/24.0GB(51.2%) | CPU: 45.2% | RAM:18.4/64.0GB(28.8%)".
std::string resource_text(const ResourceReading& reading);
/// As an object with the names and units of docs/reference/run-directory.md; null where unknown.
core::Json resource_json(const ResourceReading& reading);

}  // namespace stoker::observe
