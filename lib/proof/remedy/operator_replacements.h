// SPDX-License-Identifier: Apache-2.0
// Operators of LibTorch replaced for particular shapes: convolutions by a slice and one without stride, products of
// matrices by loops of ours, batch norm with sums of ours.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>

#include "proof/remedy/remedy.h"

namespace stoker::proof {

// Matrix multiplication by plain loops: slow, and right whatever the libraries do.

/// left [M, K] by right [K, N], or [B, M, K] by [B, K, N], in memory of the host; sums are float32, the result has the
/// type of `left`.
at::Tensor own_product(const at::Tensor& left, const at::Tensor& right);

/// From here on, on CPUs, the operations of these families are computed so; of Alternative::without_onednn nothing is
/// done here. May be called again: the last ones count.
void replace_operators(const std::map<std::string, Alternative>& ways);

}  // namespace stoker::proof
