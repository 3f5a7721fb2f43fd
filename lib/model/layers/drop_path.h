// SPDX-License-Identifier: Apache-2.0
// Random omissions while training: dropout and stochastic depth. They draw from model::random_source():
// torch's own generator of the device, whose state every checkpoint holds, or one that is a function of the position in
// the run, so that a resumed run draws what the whole run would have drawn.
#pragma once

#include <torch/types.h>

namespace stoker::model {

/// Stochastic depth (Huang et al. 2016) per sample, as torchvision's mode "row": x [B, ...] -> each sample is
/// 0 with probability `rate` in [0, 1), else divided by 1 - rate. Nothing is drawn when not training or at
/// rate 0.
torch::Tensor drop_path(const torch::Tensor& x, double rate, bool training);

/// Dropout (Srivastava et al. 2014) of single numbers, any shape; as above.
torch::Tensor drop_out(const torch::Tensor& x, double rate, bool training);

}  // namespace stoker::model
