// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/allocation_trace.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <unordered_map>

#include "engine/memory/activation_arena.h"
#include "engine/memory/best_fit_heap.h"

namespace stoker::engine {
namespace {

/// Stands before LibTorch's allocator while a trace is taken. Blocks keep their deleter: one that outlives the trace
/// is freed as any other.
class TracingAllocator final : public CpuAllocator<TracingAllocator> {
 public:
  void begin(c10::Allocator& below) {
    TORCH_INTERNAL_ASSERT(&below != this, "one trace at a time");
    below_ = &below;
    const std::lock_guard<std::mutex> lock(mutex_);
    trace_.clear();
    sizes_.clear();
    noting_ = true;
  }
  AllocationTrace end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    noting_ = false;
    return std::move(trace_);
  }

  static TracingAllocator& instance() {
    static TracingAllocator allocator;
    return allocator;
  }

  static c10::DataPtr block(size_t bytes) {
    void* const memory = instance().below_.load()->raw_allocate(bytes);
    if (memory != nullptr) instance().note(memory, static_cast<int64_t>(bytes));
    return {memory, memory, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  static void free_block(void* memory) {
    if (memory == nullptr) return;
    instance().note_end(memory);
    instance().below_.load()->raw_deallocate(memory);
  }

 private:
  void note(void* memory, int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!noting_) return;
    sizes_[memory] = bytes;
    trace_.push_back(bytes);
  }

  void note_end(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return;
    if (noting_) trace_.push_back(-found->second);
    sizes_.erase(found);
  }

  std::mutex mutex_;
  std::atomic<c10::Allocator*> below_ = c10::GetDefaultCPUAllocator();  ///< the same at all times once it was set
  bool noting_ = false;
  AllocationTrace trace_;
  std::unordered_map<void*, int64_t> sizes_;  ///< bytes of the blocks that are held
};

/// While it lives, CPU tensors are made by the tracing allocator.
class TracingScope {
 public:
  TracingScope() : before_(c10::GetCPUAllocator()) {
    TracingAllocator::instance().begin(*before_);
    c10::SetCPUAllocator(&TracingAllocator::instance());
  }
  ~TracingScope() {
    c10::SetCPUAllocator(before_);
    TracingAllocator::instance().end();
  }
  TracingScope& operator=(TracingScope&&) = delete;  // not copied, not moved

 private:
  c10::Allocator* before_;
};

/// A value that is `small` for `from` and `large` for `to` images, for `at` images; not below 0 for what is held.
double extended(int64_t small, int64_t large, int64_t from, int64_t to, int64_t at) {
  const double slope = static_cast<double>(large - small) / static_cast<double>(to - from);
  return static_cast<double>(small) + slope * static_cast<double>(at - from);
}

/// Only blocks of traces that are alike can be extended one by one.
bool are_alike(const TracedWork& small, const TracedWork& large) {
  return small.images != large.images && small.trace.size() == large.trace.size();
}

/// Calls `visit` with each change of the trace, extended to `images` images. For traces that are alike.
template <typename Visit>
void visit_extended(const TracedWork& small, const TracedWork& large, int64_t images, const Visit& visit) {
  for (size_t i = 0; i < small.trace.size(); ++i) {
    visit(extended(small.trace[i], large.trace[i], small.images, large.images, images));
  }
}

/// `peak`, but no less than was seen on no more images, and on fewer than were tried no more than was seen, and no less
/// than their share of it.
int64_t within_peaks(double peak, const TracedWork& small, const TracedWork& large, int64_t images) {
  const auto of_small = static_cast<double>(peak_bytes(small.trace));
  const auto of_large = static_cast<double>(peak_bytes(large.trace));
  if (images >= large.images) return std::llround(std::max({peak, of_small, of_large}));
  if (images >= small.images) return std::llround(std::max(peak, of_small));
  const double share = of_small * static_cast<double>(images) / static_cast<double>(small.images);
  return std::llround(std::clamp(peak, share, of_small));
}

/// Blocks of a trace in working memory. A trace does not record which of several equal blocks is given back: here it is
/// the latest, as it is for what a forward pass keeps for the backward pass.
class TracedBlocks {
 public:
  explicit TracedBlocks(BestFitHeap& heap) : heap_(heap) {}
  ~TracedBlocks() {
    for (const auto& [bytes, offsets] : offsets_) {
      for (const int64_t offset : offsets) heap_.release(offset, bytes);
    }
  }
  TracedBlocks& operator=(TracedBlocks&&) = delete;  // not copied, not moved

  void change(int64_t change) {
    const int64_t bytes = arena_block_bytes(std::abs(change));
    if (bytes == 0) return;
    std::vector<int64_t>& offsets = offsets_[bytes];
    if (change > 0) {
      offsets.push_back(heap_.allocate(bytes));
    } else if (!offsets.empty()) {
      heap_.release(offsets.back(), bytes);
      offsets.pop_back();
    }
  }

 private:
  BestFitHeap& heap_;
  std::unordered_map<int64_t, std::vector<int64_t>> offsets_;  ///< offsets of the held blocks of each size
};

}  // namespace

AllocationTrace trace_allocations(const std::function<void()>& work) {
  const TracingScope scope;
  work();
  return TracingAllocator::instance().end();
}

int64_t peak_bytes(const AllocationTrace& trace) {
  int64_t held = 0, peak = 0;
  for (const int64_t bytes : trace) peak = std::max(peak, held += bytes);
  return peak;
}

int64_t extrapolated_peak(const TracedWork& small, const TracedWork& large, int64_t images) {
  if (small.images == large.images) return peak_bytes(large.trace) / std::max<int64_t>(1, large.images) * images;
  if (!are_alike(small, large)) {
    const double peak = extended(peak_bytes(small.trace), peak_bytes(large.trace), small.images, large.images, images);
    return within_peaks(peak, small, large, images);
  }
  double held = 0, peak = 0;
  visit_extended(small, large, images, [&](double bytes) { peak = std::max(peak, held += bytes); });
  return within_peaks(peak, small, large, images);
}

int64_t arena_high_water_mark(const std::vector<TracedPass>& passes) {
  BestFitHeap heap;
  for (const TracedPass& pass : passes) {
    if (pass.images == 0) continue;
    TracedBlocks blocks(heap);
    if (are_alike(pass.small, pass.large)) {
      visit_extended(pass.small, pass.large, pass.images, [&](double bytes) { blocks.change(std::llround(bytes)); });
    } else {
      blocks.change(extrapolated_peak(pass.small, pass.large, pass.images));
    }
  }
  return heap.high_water_mark();
}

}  // namespace stoker::engine
