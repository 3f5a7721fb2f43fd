// SPDX-License-Identifier: Apache-2.0
// The allocations of CPU tensors by a piece of work, in order, and the memory of the same work on more images.
// Torch-free header.
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

/// A trace of work on `images` images.
struct TracedWork {
  int64_t images = 0;
  AllocationTrace trace;
};

/// The peak memory of the same work on `images` images, from traces on two smaller numbers of images. Each block is
/// taken to grow linearly; which blocks are held at once at the worst moment may then be others than in the traces:
/// gradients of the weights matter for few images, activations for many. Where the two traces differ in length (an
/// operation chose another way), their peaks are extended instead. Never less than what was held on as many images or
/// fewer: where more of them seemed to need less, that was something else. Fewer images than those of `small` take at
/// most its peak and at least their share of it.
int64_t extrapolated_peak(const TracedWork& small, const TracedWork& large, int64_t images);

/// Work that is done on `images` images, known from traces on two other numbers of images.
struct TracedPass {
  const TracedWork& small;
  const TracedWork& large;
  int64_t images = 0;
};
/// How far working memory (engine/memory/activation_arena) grows when these are done one after the other, beginning
/// with an empty one: what is held at once and the gaps between it. Passes of 0 images are left out.
int64_t arena_high_water_mark(const std::vector<TracedPass>& passes);

/// Images of each batch that a run works on; 0: there is none such.
struct BatchSizes {
  int64_t train = 0, last_train = 0, val = 0, last_val = 0;
};

}  // namespace stoker::engine
