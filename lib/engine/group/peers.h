// SPDX-License-Identifier: Apache-2.0
// Bytes from one rank to another and back, and what is built on that: sums in a fixed tree, and bytes from all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace stoker::engine {

class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends `out_bytes` bytes to `peer` and receives `in_bytes` from it, at the same time; either may be 0. `peer` makes
  /// the opposite call. Returns when both are done: one that only sends may wait until `peer` receives. Throws
  /// core::Error{peer_lost}.
  virtual void exchange(int peer, const void* out, size_t out_bytes, void* in, size_t in_bytes) = 0;
};

/// Peers that learn what happens to other ranks while this one waits for them.
class WatchedPeers : public Peers {
 public:
  /// Throws core::Error{peer_lost} when nothing can be exchanged any more, with the cause.
  virtual void throw_if_broken() = 0;
  /// Waits for something that other ranks have a part in and that does not come through exchange(): until `is_done`,
  /// which is called repeatedly, and throws what went wrong. Throws core::Error{peer_lost} as exchange() does.
  virtual void wait_for(const std::function<bool()>& is_done) = 0;
  /// For as long as another rank's word about its end may be on its way; throws it when it comes.
  virtual void wait_for_cause() = 0;
};

/// See Group::sum. Ranks beyond a power of two give theirs to another rank first. Then each pair of ranks halves what
/// it adds (recursive halving), until each rank has a part of the whole sum, and gives that on (recursive doubling): 2
/// (W - 1) / W of the bytes for W ranks, as much as a ring. Few numbers are added without being halved. Tensors lie
/// where `peers` takes memory from, all of them on one device, and what is added is added there.
void sum_over_peers(Peers& peers, const std::vector<at::Tensor>& tensors);

/// See Group::gather.
std::vector<std::string> gather_from_peers(Peers& peers, const std::string& bytes);
/// See Group::from_root.
std::string from_root_of_peers(Peers& peers, const std::string& bytes);

}  // namespace stoker::engine
