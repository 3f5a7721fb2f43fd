// SPDX-License-Identifier: Apache-2.0
// In place of NCCL where LibTorch has no CUDA, or nccl.h and its library were not found: GPUs have no way to each
// other.
#include "core/error.h"
#include "engine/group/c10d/device_peers.h"

namespace stoker::engine {

std::string card_of(const at::Device&) { return ""; }

std::unique_ptr<DevicePeers> connect_devices(WatchedPeers&, const at::Device&) {
  throw core::Error(core::ErrorKind::bug, "devices cannot be connected: this program was built without NCCL");
}

}  // namespace stoker::engine
