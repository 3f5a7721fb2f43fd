// SPDX-License-Identifier: Apache-2.0
// For a LibTorch with CUDA: what the devices are and how much of their memory is used.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include "engine/device.h"

namespace stoker::engine {

std::vector<core::AcceleratorFacts> list_accelerators() {
  std::vector<core::AcceleratorFacts> accelerators;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // clears it: no driver is an answer, not a fault
    return accelerators;
  }
  for (int index = 0; index < count; ++index) {
    const cudaDeviceProp* const properties = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index));
    accelerators.push_back({properties->name, static_cast<int64_t>(properties->totalGlobalMem),
                            properties->major >= 8});
  }
  return accelerators;
}

DeviceMemory device_memory(torch::Device device) {
  DeviceMemory memory;
  if (!device.is_cuda()) return memory;
  const c10::cuda::CUDAGuard guard(device);
  size_t free_now = 0, total = 0;
  if (cudaMemGetInfo(&free_now, &total) == cudaSuccess) {
    memory.free_bytes = static_cast<int64_t>(free_now);
    memory.total_bytes = static_cast<int64_t>(total);
  }
  // Index 0 of each statistic is the sum over all pools.
  memory.peak_bytes = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index()).reserved_bytes[0].peak;
  return memory;
}

std::string pci_bus_id(torch::Device device) {
  char text[32] = "";
  const bool known = device.is_cuda() && cudaDeviceGetPCIBusId(text, sizeof text, device.index()) == cudaSuccess;
  return known ? text : "";
}

void synchronize(torch::Device device) {
  if (!device.is_cuda()) return;
  const c10::cuda::CUDAGuard guard(device);
  C10_CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace stoker::engine
