// SPDX-License-Identifier: Apache-2.0
// Whether a tensor holds inf or NaN, asked beside training.
#pragma once

#include <torch/types.h>

namespace stoker::engine {

/// Of a CPU's float32 tensor by the calling thread alone.
bool all_finite(const torch::Tensor& tensor);

}  // namespace stoker::engine
