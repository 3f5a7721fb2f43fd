// SPDX-License-Identifier: Apache-2.0
// Which device computes and how its backends are set. device_cuda.cpp or device_cpu.cpp implements the part that
// needs CUDA headers; CMake picks one by what LibTorch was built with.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "core/system/machine.h"

namespace stoker::engine {

/// The CUDA devices that LibTorch can use; empty on a CPU build.
std::vector<core::AcceleratorFacts> list_accelerators();

/// "cpu" or "cuda:N". Throws Error{unavailable} when that device is not there.
torch::Device open_device(const std::string& name);

struct BackendSettings {
  int64_t threads = 1;         ///< CPU threads inside one operation
  int64_t other_threads = 0;   ///< that the process will start besides: those of the loader
  bool tf32 = false;           ///< CUDA: matmul and convolution inputs rounded to 10 bits
  bool deterministic = false;  ///< only algorithms that give the same bits each time
  bool benchmark = true;       ///< CUDA: let cuDNN time its algorithms; off when deterministic
};
/// Throws Error{os} when so many threads cannot be had; LibTorch would wait for them for ever.
void configure_backends(const BackendSettings& settings);

/// A device's memory; 0 where unknown. Peaks are since the process began or forget_device_peak().
struct DeviceMemory {
  int64_t peak_bytes = 0;            ///< most that LibTorch has held, pieces between tensors included
  int64_t held_bytes = 0;            ///< that LibTorch holds now
  int64_t peak_allocated_bytes = 0;  ///< most that tensors and workspaces have taken
  int64_t allocated_bytes = 0;       ///< that they take now
  int64_t free_bytes = 0;            ///< of the device, for everybody
  int64_t total_bytes = 0;
};
DeviceMemory device_memory(torch::Device device);
void forget_device_peak(torch::Device device);
/// Gives memory that no tensor uses back to the device.
void release_unused_memory(torch::Device device);

/// Where the driver's tools find a CUDA device, "00000000:3b:00.0"; empty for the CPU.
std::string pci_bus_id(torch::Device device);

/// "LibTorch 1.13.0, CPU build".
std::string libtorch_text();

/// Waits until the device has done all queued work; nothing to wait for on the CPU.
void synchronize(torch::Device device);

}  // namespace stoker::engine
