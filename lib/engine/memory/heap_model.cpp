// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/heap_model.h"

#include <iterator>

namespace stoker::engine {

void HeapModel::drop(Gaps::iterator gap) {
  by_size_.erase({gap->second, gap->first});
  gaps_.erase(gap);
}

void HeapModel::keep(int64_t place, int64_t bytes) {
  gaps_.emplace(place, bytes);
  by_size_.emplace(bytes, place);
}

HeapModel::Gaps::iterator HeapModel::last_gap() {
  if (gaps_.empty()) return gaps_.end();
  const auto last = std::prev(gaps_.end());
  return last->first + last->second == height_ ? last : gaps_.end();
}

void HeapModel::shrink() {
  const auto last = last_gap();
  if (last == gaps_.end()) return;
  height_ = last->first;
  drop(last);
}

int64_t HeapModel::allocate(int64_t bytes) {
  if (const auto fitting = by_size_.lower_bound({bytes, 0}); fitting != by_size_.end()) {
    const auto [gap_bytes, place] = *fitting;
    drop(gaps_.find(place));
    if (gap_bytes > bytes) keep(place + bytes, gap_bytes - bytes);
    return place;
  }
  const auto last = last_gap();  // is used and lengthened
  const int64_t place = last != gaps_.end() ? last->first : height_;
  if (may_grow_ && !may_grow_(place + bytes)) return kNoPlace;
  if (last != gaps_.end()) drop(last);
  height_ = place + bytes;
  return place;
}

void HeapModel::release(int64_t place, int64_t bytes) {
  const auto next = gaps_.lower_bound(place);
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == place) {
      place = before->first;
      bytes += before->second;
      drop(before);
    }
  }
  if (next != gaps_.end() && place + bytes == next->first) {
    bytes += next->second;
    drop(next);
  }
  keep(place, bytes);
}

}  // namespace stoker::engine
