// SPDX-License-Identifier: Apache-2.0
// The resources that a run uses at one moment, or over a window, as values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "engine/run/events.h"

namespace stoker::observe {

// Readings of a GPU by NVIDIA's management library. Loaded at run time when it is there: nothing links against it.

using engine::GpuReading;

/// One thread at a time. Nothing throws: without library, driver or GPU all readings are absent.
class Nvml {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  /// Loads the library and starts it; can take a second on an idle driver.
  explicit Nvml(const std::string& library = kLibrary);
  ~Nvml();
  Nvml& operator=(Nvml&&) = delete;  // not copied, not moved

  /// "" when it works, else why not: "libnvidia-ml.so.1 cannot be loaded".
  const std::string& failure() const { return failure_; }
  std::string driver_version() const;             ///< "535.183.01"; "" when unknown
  std::vector<std::string> device_names() const;  ///< in the driver's order, not CUDA's
  /// The first device of the driver among `names`: "MIG-..." and "GPU-..." with a UUID, others as places,
  /// "00000000:3b:00.0".
  GpuReading read(const std::vector<std::string>& names);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::string failure_;
};

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

/// The four figures of the live line, each "n/a" where unknown: "GPU: 85%", "VRAM:12.3/24.0GB(51.2%)",
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
