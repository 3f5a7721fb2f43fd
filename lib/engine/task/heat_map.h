// SPDX-License-Identifier: Apache-2.0
// Heat maps of what speaks for a prediction, place by place: LayerCAM (Jiang et al., IEEE TIP 2021).
#pragma once

#include <torch/types.h>

#include "model/image_model.h"

namespace stoker::engine {

/// Heat of each image in [0, 1], float32 [n, H, W] on the CPU, for its best class or label: the last map of the
/// network, each value weighed by its positive gradient. `images`: [n, C, H, W], normalised, where the network is; a
/// few, since it runs backward. In float32 and without oneDNN, since none of these operations was proven. Undefined
/// where the network has no maps. The runner of the network's stages is reset.
torch::Tensor heat_of(model::ImageModel& model, const torch::Tensor& images);

/// The images under their heat, from blue to red: bytes [n, H, W, 3] on the CPU. `images`: [n, C, H, W] in [0, 1]; of
/// other than 3 channels the first.
torch::Tensor under_heat(const torch::Tensor& images, const torch::Tensor& heat);

}  // namespace stoker::engine
