// SPDX-License-Identifier: Apache-2.0
// LibTorch's threads as kernels::ParallelFor.
#pragma once

#include <ATen/Parallel.h>

#include "kernels/parallel.h"

namespace stoker::model {

inline void on_torch_threads(int64_t count, int64_t grain, const kernels::RangeWork& work) {
  at::parallel_for(0, count, grain, work);
}

}  // namespace stoker::model
