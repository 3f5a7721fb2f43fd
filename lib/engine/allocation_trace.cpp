// SPDX-License-Identifier: Apache-2.0
#include "engine/allocation_trace.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "engine/heap_model.h"

namespace stoker::engine {
namespace {

/// Stands before LibTorch's allocator while a trace is taken. Blocks know their way back: one that outlives the trace
/// is freed as any other.
class TracingAllocator final : public c10::Allocator {
 public:
  // Whether allocate() is const and whether copy_data() exists depends on the release of LibTorch: without `override`
  // each is there for those that ask for it.
  c10::DataPtr allocate(size_t bytes) const { return allocate_noted(bytes); }
  c10::DataPtr allocate(size_t bytes) { return allocate_noted(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const { std::memcpy(to, from, bytes); }
  c10::DeleterFnPtr raw_deleter() const { return &free_noted; }

  void begin() {
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

 private:
  static c10::DataPtr allocate_noted(size_t bytes) {
    c10::DataPtr block = c10::GetDefaultCPUAllocator()->allocate(bytes);
    void* const memory = block.release_context();
    if (memory != nullptr) instance().note(memory, static_cast<int64_t>(bytes));
    return {memory, memory, &free_noted, c10::Device(c10::DeviceType::CPU)};
  }

  static void free_noted(void* memory) {
    if (memory == nullptr) return;
    instance().note_end(memory);
    c10::GetDefaultCPUAllocator()->raw_deleter()(memory);
  }

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
  bool noting_ = false;
  AllocationTrace trace_;
  std::unordered_map<void*, int64_t> sizes_;  ///< bytes of the blocks that are held
};

/// While it lives, CPU tensors are made by the tracing allocator.
class TracingScope {
 public:
  TracingScope() : before_(c10::GetCPUAllocator()) {
    TracingAllocator::instance().begin();
    c10::SetCPUAllocator(&TracingAllocator::instance());
  }
  ~TracingScope() {
    c10::SetCPUAllocator(before_);
    TracingAllocator::instance().end();
  }
  TracingScope(const TracingScope&) = delete;
  TracingScope& operator=(const TracingScope&) = delete;

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

/// Of blocks below `limit` bytes at `images` images.
int64_t highest_sum(const TracedWork& small, const TracedWork& large, int64_t images, double limit) {
  if (small.images == large.images) return peak_bytes(large.trace) / std::max<int64_t>(1, large.images) * images;
  if (!are_alike(small, large)) {
    const double peak = extended(peak_bytes(small.trace), peak_bytes(large.trace), small.images, large.images, images);
    return std::llround(std::max(0.0, peak));
  }
  double held = 0, peak = 0;
  visit_extended(small, large, images, [&](double bytes) {
    if (std::abs(bytes) < limit) peak = std::max(peak, held += bytes);
  });
  return std::llround(peak);
}

/// What a process holds for the blocks of a trace. A trace does not say which of several equal blocks is given back: here
/// it is the latest, as it is for what a forward pass keeps for the backward pass.
class ResidentModel {
 public:
  void change(int64_t bytes) {
    std::vector<int64_t>& places = places_[std::abs(bytes)];
    const bool is_mapped = std::abs(bytes) >= kMappedBytes;
    if (bytes < 0) {
      if (places.empty()) return;
      if (is_mapped) {
        mapped_ += bytes;
      } else {
        heap_.release(places.back(), -bytes);
      }
      places.pop_back();
      return;
    }
    if (is_mapped) mapped_ += bytes;
    places.push_back(is_mapped ? 0 : heap_.allocate(bytes));
    peak_ = std::max(peak_, heap_.height() + mapped_);
  }
  int64_t peak() const { return peak_; }

 private:
  HeapModel heap_;
  std::unordered_map<int64_t, std::vector<int64_t>> places_;  ///< of the blocks of a size that are held
  int64_t mapped_ = 0, peak_ = 0;
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
  return highest_sum(small, large, images, std::numeric_limits<double>::infinity());
}

int64_t extrapolated_resident(const TracedWork& small, const TracedWork& large, int64_t images) {
  const int64_t peak = extrapolated_peak(small, large, images);
  if (!are_alike(small, large)) return peak;
  constexpr int kTimes = 2;  // the second time finds the gaps of the first
  ResidentModel model;
  for (int time = 0; time < kTimes; ++time) {
    visit_extended(small, large, images, [&model](double bytes) {
      if (std::abs(bytes) >= 1) model.change(std::llround(bytes));
    });
  }
  return std::max(peak, model.peak());
}

int64_t extrapolated_heap(const TracedWork& small, const TracedWork& large, int64_t images) {
  return highest_sum(small, large, images, static_cast<double>(kMappedBytes));
}

}  // namespace stoker::engine
