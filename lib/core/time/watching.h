// SPDX-License-Identifier: Apache-2.0
// Whether the program keeps account of itself: clocks of updates and samples, listeners. It always does, except
// in the turns in which scripts/bench/overhead.py has it look away, to tell what watching costs.
#pragma once

#include <atomic>

namespace stoker::core {

namespace watching_internal {
inline std::atomic<bool> watched{true};
}
inline bool is_watched() { return watching_internal::watched.load(std::memory_order_relaxed); }
inline void set_watched(bool watched) { watching_internal::watched.store(watched, std::memory_order_relaxed); }

}  // namespace stoker::core
