// SPDX-License-Identifier: Apache-2.0
// GPUs by NVIDIA's management library. Loaded at run time when it is there: nothing links against it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/events.h"

namespace stoker::observe {

using engine::GpuReading;

/// A card as its driver describes it; what driver or board does not report is absent.
struct CardFacts {
  struct Process {
    int64_t pid = 0;
    std::string name;         ///< empty: not known, as of other containers
    double memory_bytes = 0;  ///< 0: not known
  };

  std::string name, place;         ///< "NVIDIA H200", "00000000:3b:00.0"
  std::string compute_capability;  ///< "9.0"
  GpuReading now;
  std::optional<double> highest_memory_clock_mhz;
  std::optional<bool> persistence, ecc, mig;
  std::optional<bool> clocks_locked;  ///< somebody set them
  std::optional<double> retired_pages, remapped_rows;
  std::optional<bool> retirement_pending, remapping_failed;                                  ///< memory pages or rows
  std::optional<double> link_generation, link_width, most_link_generation, most_link_width;  ///< PCIe: now, at most
  std::vector<Process> processes;  ///< others that compute on it
};

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
  std::string cuda_version() const;               ///< the newest that the driver supports: "12.2"; "" when unknown
  std::vector<std::string> device_names() const;  ///< in the driver's order, not CUDA's
  std::vector<CardFacts> cards() const;           ///< in the same order
  /// The first device of the driver among `names`: "MIG-..." and "GPU-..." with a UUID, others as places,
  /// "00000000:3b:00.0".
  std::optional<CardFacts> card(const std::vector<std::string>& names) const;
  GpuReading read(const std::vector<std::string>& names) const;

 private:
  struct Library;
  GpuReading read_device(void* which) const;
  CardFacts whole(void* device) const;

  std::unique_ptr<Library> library_;
  std::string failure_;
};

}  // namespace stoker::observe
