// SPDX-License-Identifier: Apache-2.0
// For a LibTorch with CUDA: what the devices are, how much of their memory is used, and when they did what.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <deque>
#include <vector>

#include "core/format.h"
#include "engine/device/device.h"

namespace stoker::engine {

namespace {

/// The kernel's part of it, or that of Windows. /dev/nvidiactl is not a sign: libcuda creates it where it may.
bool has_driver() { return ::access("/proc/driver/nvidia/version", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0; }

/// No device and no driver are answers. Anything else is a machine that should compute and does not.
core::Accelerators none_because_of(cudaError_t error) {
  cudaGetLastError();  // clears it
  core::Accelerators none;
  if ((error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) && !has_driver()) {
    none.absence = "there is no NVIDIA driver on this machine";
  } else if (error == cudaErrorNoDevice) {
    none.absence = "CUDA sees none (is CUDA_VISIBLE_DEVICES set?)";
  } else {
    none.failure = cudaGetErrorString(error);
  }
  return none;
}

}  // namespace

core::Accelerators list_accelerators() {
  core::Accelerators found;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return none_because_of(error);
  }
  for (int index = 0; index < count; ++index) {  // makes no context, which would take memory of the device
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
      found.failure = core::format("device {}: {}", index, cudaGetErrorString(error));
      cudaGetLastError();  // clears it
      return found;
    }
    core::AcceleratorFacts facts;
    facts.name = properties.name;
    facts.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
    facts.native_bfloat16 = properties.major >= 8;
    facts.compute_capability = core::format("{}.{}", properties.major, properties.minor);
    found.devices.push_back(facts);
  }
  return found;
}

bool is_cuda_build() { return true; }

DeviceMemory device_memory(torch::Device device) noexcept {
  if (!device.is_cuda()) return {};
  return device_memory_by([device](DeviceMemory& memory) {
    const c10::cuda::CUDAGuard guard(device);
    size_t free_now = 0, total = 0;
    if (cudaMemGetInfo(&free_now, &total) == cudaSuccess) {
      memory.free_bytes = static_cast<int64_t>(free_now);
      memory.total_bytes = static_cast<int64_t>(total);
    } else {
      cudaGetLastError();  // clears it
    }
    // Index 0 of each statistic is the sum over all pools. Throws before the first tensor on a device.
    const auto statistics = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    memory.peak_bytes = statistics.reserved_bytes[0].peak;
    memory.held_bytes = statistics.reserved_bytes[0].current;
    memory.peak_allocated_bytes = statistics.allocated_bytes[0].peak;
    memory.allocated_bytes = statistics.allocated_bytes[0].current;
  });
}

void forget_device_peak(torch::Device device) {
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
}

void release_unused_memory(torch::Device device) {
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
}

std::vector<std::string> driver_names(torch::Device device) {
  std::vector<std::string> names;
  if (!device.is_cuda()) return names;
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device.index()) == cudaSuccess) {
    const std::string uuid = uuid_text(properties.uuid.bytes);
    names = {"MIG-" + uuid, "GPU-" + uuid};
  }
  char text[32] = "";
  if (cudaDeviceGetPCIBusId(text, sizeof text, device.index()) == cudaSuccess) names.emplace_back(text);
  cudaGetLastError();  // clears it
  return names;
}

namespace {

/// Events with timing, taken from a pool once the device has passed them. Times are summed from mark to mark, since
/// CUDA gives differences as floats, which lose microseconds over hours.
class CudaTimeline : public DeviceTimeline {
 public:
  explicit CudaTimeline(torch::Device device) : device_(device) {
    const c10::cuda::CUDAGuard guard(device_);
    before_ = fresh_event();
    C10_CUDA_CHECK(cudaEventRecord(before_, at::cuda::getCurrentCUDAStream()));
    C10_CUDA_CHECK(cudaEventSynchronize(before_));
    time_ = std::chrono::steady_clock::now();
  }
  ~CudaTimeline() override {  // errors: the device is lost, and its memory goes with the process
    for (const Pending& pending : pending_) cudaEventDestroy(pending.event);
    for (const cudaEvent_t event : free_) cudaEventDestroy(event);
    cudaEventDestroy(before_);
    cudaGetLastError();
  }
  CudaTimeline& operator=(CudaTimeline&&) = delete;  // not copied, not moved

  void mark(int what) override {
    const c10::cuda::CUDAGuard guard(device_);
    const cudaEvent_t event = fresh_event();
    C10_CUDA_CHECK(cudaEventRecord(event, at::cuda::getCurrentCUDAStream()));
    pending_.push_back({what, event});
  }

  bool take(Mark& mark) override {
    if (pending_.empty()) return false;
    const Pending next = pending_.front();
    const cudaError_t state = cudaEventQuery(next.event);
    if (state == cudaErrorNotReady) {
      cudaGetLastError();  // clears it: not ready is an answer, not a fault
      return false;
    }
    C10_CUDA_CHECK(state);
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, before_, next.event));
    time_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double, std::milli>(milliseconds));
    free_.push_back(before_);
    before_ = next.event;
    pending_.pop_front();
    mark = {next.what, time_};
    return true;
  }

 private:
  struct Pending {
    int what;
    cudaEvent_t event;
  };

  cudaEvent_t fresh_event() {
    cudaEvent_t event = nullptr;
    if (free_.empty()) {
      C10_CUDA_CHECK(cudaEventCreate(&event));
      return event;
    }
    event = free_.back();
    free_.pop_back();
    return event;
  }

  const torch::Device device_;
  std::chrono::steady_clock::time_point time_;  ///< time of before_ on the host's clock
  cudaEvent_t before_ = nullptr;
  std::deque<Pending> pending_;
  std::vector<cudaEvent_t> free_;
};

}  // namespace

std::unique_ptr<DeviceTimeline> make_device_timeline(torch::Device device) {
  if (!device.is_cuda()) return nullptr;
  return std::make_unique<CudaTimeline>(device);
}

void synchronize(torch::Device device) {
  if (!device.is_cuda()) return;
  const c10::cuda::CUDAGuard guard(device);
  C10_CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace stoker::engine
