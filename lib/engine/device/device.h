// SPDX-License-Identifier: Apache-2.0
// Which device computes and how its backends are set. device_cuda.cpp or device_cpu.cpp implements the part that
// needs CUDA headers; CMake picks one by what LibTorch was built with.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/system/machine.h"

namespace stoker::engine {

/// The CUDA devices that LibTorch can use, and why it cannot although there is a driver; nothing on a CPU build. Makes
/// no CUDA context.
core::Accelerators list_accelerators();

/// Whether this LibTorch has the kernels of float16 autocast for the CPU.
bool cpu_computes_float16();

/// "cpu" or "cuda:N", which becomes the current device of this thread. Throws Error{unavailable} when that device is
/// not there or does not compute, which is tried.
torch::Device open_device(const std::string& name);

struct BackendSettings {
  int64_t threads = 1;         ///< CPU threads inside one operation
  int64_t other_threads = 0;   ///< that the process will start besides: those of the loader
  bool tf32 = false;           ///< CUDA: matmul and convolution inputs rounded to 10 bits
  bool deterministic = false;  ///< only algorithms that give the same bits each time
  bool benchmark = true;       ///< CUDA: let cuDNN time its algorithms; off when deterministic
};
/// Throws Error{os} when that many threads cannot be created; LibTorch would wait for them for ever.
void configure_backends(const BackendSettings& settings);

/// For its lifetime cuDNN takes the algorithms that it thinks best, without trying them: trials take memory and time
/// for each new shape.
class NoSearchScope {
 public:
  NoSearchScope();
  ~NoSearchScope();
  NoSearchScope(const NoSearchScope&) = delete;
  NoSearchScope& operator=(const NoSearchScope&) = delete;

 private:
  bool searched_;
};

/// A device's memory; 0 where unknown. Peaks are since the process began or forget_device_peak().
struct DeviceMemory {
  int64_t peak_bytes = 0;            ///< most that LibTorch has held, pieces between tensors included
  int64_t held_bytes = 0;            ///< that LibTorch holds now
  int64_t peak_allocated_bytes = 0;  ///< most that tensors and workspaces have taken
  int64_t allocated_bytes = 0;       ///< that they take now
  int64_t free_bytes = 0;            ///< of the device, for everybody
  int64_t total_bytes = 0;
};
/// Never throws: nothing is known of a device that LibTorch has not used yet, or that has failed.
DeviceMemory device_memory(torch::Device device) noexcept;
/// As far as `read` came before it threw.
DeviceMemory device_memory_by(const std::function<void(DeviceMemory&)>& read) noexcept;
/// Of its memory, 0 to 1; 1 where unknown.
double free_memory_share(torch::Device device);
void forget_device_peak(torch::Device device);
/// Gives memory that no tensor uses back to the device.
void release_unused_memory(torch::Device device);

/// The names that the driver's tools may have for a CUDA device, the first that they have being the right one: as a
/// part of a card
/// ("MIG-..."), as a card ("GPU-..."), by its place ("00000000:3b:00.0"). Of a part the place is that of the whole
/// card. None for the CPU.
std::vector<std::string> driver_names(torch::Device device);
/// "1b4e28ba-2fa1-11d2-883f-0016d3cca427" of 16 bytes.
std::string uuid_text(const char* bytes);

/// Whether LibTorch was built for CUDA, with a device at hand or without.
bool is_cuda_build();
/// "LibTorch 1.13.0, CPU build".
std::string libtorch_text();

/// What bits depend on besides options: "cpu, LibTorch 1.13.0, CPU build", "NVIDIA H200 (9.0), LibTorch 2.11.0, CUDA
/// build, cuDNN 91002".
std::string computing_text(torch::Device device);

/// Waits until the device has done all queued work; nothing to wait for on the CPU.
void synchronize(torch::Device device);

}  // namespace stoker::engine
