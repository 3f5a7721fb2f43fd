// SPDX-License-Identifier: Apache-2.0
// For a LibTorch without CUDA: there are no accelerators.
#include "engine/device/device.h"
#include "engine/device/device_timeline.h"

namespace stoker::engine {

std::vector<core::AcceleratorFacts> list_accelerators() { return {}; }

DeviceMemory device_memory(torch::Device) { return {}; }

void forget_device_peak(torch::Device) {}

void release_unused_memory(torch::Device) {}

std::string pci_bus_id(torch::Device) { return {}; }

void synchronize(torch::Device) {}

std::unique_ptr<DeviceTimeline> make_device_timeline(torch::Device) { return nullptr; }

}  // namespace stoker::engine
