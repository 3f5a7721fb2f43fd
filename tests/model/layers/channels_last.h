// SPDX-License-Identifier: Apache-2.0
// How images lie in memory where our kernels take part.
#pragma once

#include <torch/types.h>

namespace stoker::model {

inline torch::Tensor channels_last(const torch::Tensor& x) { return x.contiguous(c10::MemoryFormat::ChannelsLast); }

}  // namespace stoker::model
