// SPDX-License-Identifier: Apache-2.0
// For a LibTorch without CUDA: there are no accelerators.
#include "engine/device/device.h"

namespace stoker::engine {

core::Accelerators list_accelerators() { return {{}, {}, "this LibTorch is a CPU build"}; }

bool is_cuda_build() { return false; }

DeviceMemory device_memory(torch::Device) noexcept { return {}; }

void forget_device_peak(torch::Device) {}

void release_unused_memory(torch::Device) {}

std::vector<std::string> driver_names(torch::Device) { return {}; }

void synchronize(torch::Device) {}

std::unique_ptr<DeviceTimeline> make_device_timeline(torch::Device) { return nullptr; }

std::string graph_obstacle(torch::Device) { return "the device is no CUDA device"; }

std::unique_ptr<GraphRunner> make_graph_runner(torch::Device) { return nullptr; }

}  // namespace stoker::engine
