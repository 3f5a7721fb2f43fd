// SPDX-License-Identifier: Apache-2.0
// How many batches a loader holds: for the loader itself and for whoever plans its memory.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker::data {

/// Batches that the consumer of a loader may hold at once.
constexpr int64_t held_batches(int64_t prefetch_factor) { return std::max<int64_t>(2, prefetch_factor); }

/// Batch buffers of a loader: workers fill one more than the consumer may hold.
constexpr int64_t ring_slots(int64_t num_workers, int64_t prefetch_factor) {
  return held_batches(prefetch_factor) + (num_workers > 0 ? 1 : 0);
}

}  // namespace stoker::data
