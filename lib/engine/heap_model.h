// SPDX-License-Identifier: Apache-2.0
// A heap that takes the smallest gap that is large enough, merges neighbours, grows at its end and never shrinks, as that
// of the C library does. Holds no memory. Knows nothing of what is kept in it.
#pragma once

#include <cstdint>
#include <map>

namespace stoker::engine {

class HeapModel {
 public:
  /// Where the block begins.
  int64_t allocate(int64_t bytes);
  /// A block as it was allocated.
  void release(int64_t place, int64_t bytes);
  /// How far it has ever reached, in bytes.
  int64_t height() const { return height_; }

 private:
  using Gaps = std::map<int64_t, int64_t>;  ///< bytes by place

  void drop(Gaps::iterator gap);
  void keep(int64_t place, int64_t bytes);

  Gaps gaps_;
  std::multimap<int64_t, int64_t> by_size_;  ///< the same: place by bytes
  int64_t height_ = 0;
};

}  // namespace stoker::engine
