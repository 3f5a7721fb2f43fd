// SPDX-License-Identifier: Apache-2.0
// Bytes from the memory of one GPU to that of another, without a way through host memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/group/peers.h"

namespace stoker::engine {

/// Work is queued in the current stream of the calling thread, in the order of the calls, which is the same on all
/// ranks.
class DevicePeers : public Peers {
 public:
  /// Peers::exchange() for memory of the device. Returns once it is queued.
  void exchange(int peer, const void* out, size_t out_bytes, void* in, size_t in_bytes) override = 0;
  /// Replaces a contiguous tensor of the device by its sum over all ranks, in the order of the transport, with the same
  /// bits on all. Returns once it is queued. Throws core::Error{bug} for a type that it cannot add.
  virtual void all_reduce(const at::Tensor& tensor) = 0;
  /// Until all is done that is queued in the current stream. Throws core::Error{peer_lost} when a rank is lost or has
  /// aborted meanwhile, {os} when the transport fails; then nothing can be exchanged any more.
  virtual void wait() = 0;
  virtual int64_t bytes_sent() const = 0;
};

/// Which card a device is, in the same words on all ranks that have it; empty where connect_devices() cannot use it.
std::string card_of(const at::Device& device);

/// The card name of a rank that computes on the CPU.
inline constexpr const char* kCpuCard = "cpu";
/// Why ranks with these cards, by rank, cannot exchange between their devices; empty: they can.
std::string link_obstacle(const std::vector<std::string>& cards);

/// Every rank makes this call, each with a card of its own that no other rank has. `peers` outlives the result, and
/// reports what happens to other ranks. Throws as DevicePeers::wait().
std::unique_ptr<DevicePeers> connect_devices(WatchedPeers& peers, const at::Device& device);

}  // namespace stoker::engine
