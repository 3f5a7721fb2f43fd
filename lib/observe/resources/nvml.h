// SPDX-License-Identifier: Apache-2.0
// Readings of a GPU by NVIDIA's management library. Loaded at run time when it is there: nothing links against it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/run/events.h"

namespace stoker::observe {

using engine::GpuReading;

/// One thread at a time. Nothing throws: without library, driver or GPU all readings are absent.
class Nvml {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  /// Loads the library and starts it; can take a second on an idle driver.
  explicit Nvml(const std::string& library = kLibrary);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// "" when it works, else why not: "libnvidia-ml.so.1 cannot be loaded".
  const std::string& failure() const { return failure_; }
  std::string driver_version() const;             ///< "535.183.01"; "" when unknown
  std::vector<std::string> device_names() const;  ///< in the driver's order, not CUDA's
  /// Of the first device of the driver among `names`: "MIG-..." and "GPU-..." with a UUID, others as places,
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

}  // namespace stoker::observe
