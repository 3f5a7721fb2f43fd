// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication by plain loops: slow, and right whatever the libraries do.
#pragma once

#include <torch/types.h>

namespace stoker::proof {

/// left [M, K] by right [K, N], or [B, M, K] by [B, K, N], in memory of the host; sums are float32, the result has the
/// type of `left`.
at::Tensor own_product(const at::Tensor& left, const at::Tensor& right);

}  // namespace stoker::proof
