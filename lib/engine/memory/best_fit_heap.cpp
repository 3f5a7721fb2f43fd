// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/best_fit_heap.h"

#include <iterator>

namespace stoker::engine {

void BestFitHeap::drop(Gaps::iterator gap) {
  by_size_.erase({gap->second, gap->first});
  gaps_.erase(gap);
}

void BestFitHeap::keep(int64_t offset, int64_t bytes) {
  gaps_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

BestFitHeap::Gaps::iterator BestFitHeap::last_gap() {
  if (gaps_.empty()) return gaps_.end();
  const auto last = std::prev(gaps_.end());
  return last->first + last->second == high_water_mark_ ? last : gaps_.end();
}

void BestFitHeap::shrink() {
  const auto last = last_gap();
  if (last == gaps_.end()) return;
  high_water_mark_ = last->first;
  drop(last);
}

int64_t BestFitHeap::allocate(int64_t bytes) {
  if (const auto fitting = by_size_.lower_bound({bytes, 0}); fitting != by_size_.end()) {
    const auto [gap_bytes, offset] = *fitting;
    drop(gaps_.find(offset));
    if (gap_bytes > bytes) keep(offset + bytes, gap_bytes - bytes);
    return offset;
  }
  const auto last = last_gap();  // is used and lengthened
  const int64_t offset = last != gaps_.end() ? last->first : high_water_mark_;
  if (may_grow_ && !may_grow_(offset + bytes)) return kNoOffset;
  if (last != gaps_.end()) drop(last);
  high_water_mark_ = offset + bytes;
  return offset;
}

void BestFitHeap::release(int64_t offset, int64_t bytes) {
  const auto next = gaps_.lower_bound(offset);
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      drop(before);
    }
  }
  if (next != gaps_.end() && offset + bytes == next->first) {
    bytes += next->second;
    drop(next);
  }
  keep(offset, bytes);
}

}  // namespace stoker::engine
