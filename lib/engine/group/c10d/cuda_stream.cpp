// SPDX-License-Identifier: Apache-2.0
#include "engine/group/c10d/cuda_stream.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <fstream>
#include <string>

#include "core/system/machine.h"
#include "engine/group/c10d/device_peers.h"

namespace stoker::engine {
namespace {

/// The identifier of the running kernel: containers of one machine have it in common, and their names need not
/// distinguish machines.
std::string machine_name() {
  std::string id;
  if (std::ifstream("/proc/sys/kernel/random/boot_id") >> id) return id;
  return core::host_name();
}

}  // namespace

cudaStream_t current_stream(const c10::Device& device) { return c10::cuda::getCurrentCUDAStream(device.index()); }

bool is_current_stream_idle(const c10::Device& device) {
  return c10::cuda::getCurrentCUDAStream(device.index()).query();
}

void with_device(const c10::Device& device, const std::function<void()>& work) {
  const c10::cuda::CUDAGuard guard(device);
  work();
}

/// By its place: parts of one card (MIG) have that in common, and NCCL does not join them.
std::string card_of(const at::Device& device) {
  if (!device.is_cuda()) return "";
  char place[32] = "";
  if (cudaDeviceGetPCIBusId(place, sizeof place, device.index()) != cudaSuccess) {
    cudaGetLastError();  // clears it
    return "";
  }
  return machine_name() + " " + place;
}

}  // namespace stoker::engine
