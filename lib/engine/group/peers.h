// SPDX-License-Identifier: Apache-2.0
// Bytes from one rank to another and back, and what is built on that: sums in a fixed tree, and bytes from all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
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
