// SPDX-License-Identifier: Apache-2.0
// Whether threads can be had, asked before libraries need them: OpenMP ends the process when a thread cannot be made,
// and LibTorch's pool waits for it for ever, where no signal ends the wait.
#pragma once

#include <cstdint>

namespace stoker::core {

/// Makes `count` threads at once and lets them end. Throws Error{os} with the number that could be made.
void require_threads(int64_t count);

}  // namespace stoker::core
