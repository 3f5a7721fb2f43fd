// SPDX-License-Identifier: Apache-2.0
// How kernels spread their work over threads whatever library owns the threads.
#pragma once

#include <cstdint>
#include <functional>

namespace stoker::kernels {

/// Does pieces [begin, end) of the work; called from several threads at once, with other pieces each time.
using RangeWork = std::function<void(int64_t begin, int64_t end)>;

/// Calls `work` until pieces [0, count) are done, at least `grain` pieces in a call except the last, and returns then.
/// The modules that have tensors pass at::parallel_for. Results of kernels do not depend on how pieces are spread.
using ParallelFor = void (*)(int64_t count, int64_t grain, const RangeWork& work);

}  // namespace stoker::kernels
