// SPDX-License-Identifier: Apache-2.0
// What a piece of work allocates for CPU tensors, in order, and what the same work would need on more images.
// Torch-free header; knows nothing of networks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace stoker::engine {

/// Bytes in the order in which they change hands: > 0 allocated, < 0 given back.
using AllocationTrace = std::vector<int64_t>;

/// Runs `work` and notes every block that LibTorch takes for tensors on the CPU meanwhile, and when it gives it back;
/// blocks from before are left out. One at a time in a process. What `work` throws passes through.
AllocationTrace trace_allocations(const std::function<void()>& work);

/// The most that was held at once.
int64_t peak_bytes(const AllocationTrace& trace);

/// A trace of work on so many images.
struct TracedWork {
  int64_t images = 0;
  AllocationTrace trace;
};

/// What the same work holds at most on `images` images, from traces on two smaller numbers of images. Each block is
/// taken to grow linearly; which blocks are held at once at the worst moment may then be others than in the traces:
/// gradients of the weights matter for few images, activations for many. Where the two traces differ in length (an
/// operation chose another way), their peaks are extended instead.
int64_t extrapolated_peak(const TracedWork& small, const TracedWork& large, int64_t images);
/// The same of blocks below kMappedBytes alone: what the heap has grown to afterwards, and other work cannot count on.
int64_t extrapolated_heap(const TracedWork& small, const TracedWork& large, int64_t images);

/// What the process comes to hold for that work, done over and over: with the gaps that a heap keeps between its blocks, and
/// at its full height even while blocks of kMappedBytes and more are held beside it. At least extrapolated_peak().
int64_t extrapolated_resident(const TracedWork& small, const TracedWork& large, int64_t images);

/// Blocks of so many bytes come from the kernel and go back to it; smaller ones are cut from a heap that never shrinks
/// (app/process sets both).
inline constexpr int64_t kMappedBytes = 32 << 20;

}  // namespace stoker::engine
