// SPDX-License-Identifier: Apache-2.0
// Memory that an update or an evaluation works with on the CPU: activations, gradients and what operations hold on the
// way, cut from one range of addresses by BestFitHeap. It does not shrink by itself, so that pages fault in once, and a
// plan that runs the same BestFitHeap on a trace predicts how far it will grow. Torch-free header.
#pragma once

#include <cstdint>

namespace stoker::engine {

/// For its lifetime, tensors of the calling thread that take kArenaBlockBytes or more are cut from working memory.
/// For work that gives nearly everything back at its end: what stays breaks the range into pieces. Scopes may nest. A
/// tensor may end on any thread.
class ActivationArenaScope {
 public:
  ActivationArenaScope();
  ~ActivationArenaScope();
  ActivationArenaScope& operator=(ActivationArenaScope&&) = delete;  // not copied, not moved
};

/// Once in a process, before work begins. Without it, under a limit of address space (ulimit -v) and in builds with
/// AddressSanitizer, scopes do nothing: all tensors then come from LibTorch's own allocator. True when scopes count.
bool install_activation_arena();

/// The pages that no tensor lies on go back to the kernel, and it shrinks to its last tensor.
void trim_activation_arena();

/// Its size since the last shrink, and the part that tensors hold now, in bytes.
int64_t activation_arena_high_water_mark();
int64_t activation_arena_held();

/// Smaller blocks, weights of small layers and statistics among them, come from the C library at all times.
inline constexpr int64_t kArenaBlockBytes = 16 << 10;
/// The working memory of a block of `bytes`: whole cache lines; 0 where it is not cut from it.
constexpr int64_t arena_block_bytes(int64_t bytes) {
  constexpr int64_t kLine = 64;
  return bytes < kArenaBlockBytes ? 0 : (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace stoker::engine
