// SPDX-License-Identifier: Apache-2.0
// How long ago a moment was, by the clock that never goes back.
#pragma once

#include <chrono>

namespace stoker::core {

/// Wall seconds from `begin` until now.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace stoker::core
