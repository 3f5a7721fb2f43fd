// SPDX-License-Identifier: Apache-2.0
// A heap that takes the smallest gap that is large enough, merges neighbours, grows at its end and shrinks on
// request: where blocks lie, as numbers. Holds no memory.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace stoker::engine {

class BestFitHeap {
 public:
  static constexpr int64_t kNoOffset = -1;

  /// Before it grows to a high_water_mark, `may_grow` is called; empty: it always may.
  explicit BestFitHeap(std::function<bool(int64_t high_water_mark)> may_grow = {}) : may_grow_(std::move(may_grow)) {}

  /// Where the block begins; kNoOffset, and nothing has changed, where it would have to grow and may not.
  int64_t allocate(int64_t bytes);
  /// A block as it was allocated.
  void release(int64_t offset, int64_t bytes);
  /// Gives up the gap at its end.
  void shrink();
  /// How far it has reached since it last shrank, in bytes.
  int64_t high_water_mark() const { return high_water_mark_; }
  /// Calls visit(offset, bytes) for each gap, from the beginning.
  template <typename Visit>
  void visit_gaps(const Visit& visit) const {
    for (const auto& [offset, bytes] : gaps_) visit(offset, bytes);
  }

 private:
  using Gaps = std::map<int64_t, int64_t>;  ///< bytes by offset

  /// The gap at the end of the heap; the end of gaps_ where a block lies there.
  Gaps::iterator last_gap();
  void drop(Gaps::iterator gap);
  void keep(int64_t offset, int64_t bytes);

  std::function<bool(int64_t high_water_mark)> may_grow_;
  Gaps gaps_;
  std::set<std::pair<int64_t, int64_t>> by_size_;  ///< the same: bytes and offset
  int64_t high_water_mark_ = 0;
};

// The interface of an allocator of CPU tensors for every release of LibTorch.

/// `Self` has static functions `c10::DataPtr block(size_t bytes)` and `void free_block(void*)`. Whether allocate() is
/// const and whether copy_data() exists depends on the release: without `override` each is there for those that need
/// it.
template <class Self>
class CpuAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) const { return Self::block(bytes); }
  c10::DataPtr allocate(size_t bytes) { return Self::block(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const { std::memcpy(to, from, bytes); }
  c10::DeleterFnPtr raw_deleter() const { return &Self::free_block; }
};

}  // namespace stoker::engine
