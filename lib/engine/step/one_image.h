// SPDX-License-Identifier: Apache-2.0
// Whether a network can train on a batch of one image. Batch norm in training needs two values per channel at least:
// one image is enough where its maps are larger than one value, and not where they are a single value.
#pragma once

#include <torch/types.h>

#include "engine/device/precision.h"
#include "model/image_model.h"

namespace stoker::engine {

/// Tries a forward pass without gradients. `model` is in training mode, on the device of `image` [1, ...]; its buffers
/// and the random state are as before afterwards, and gradients that were gathered stay.
bool trains_on_one_image(model::ImageModel& model, const torch::Tensor& image, const Precision& precision);

}  // namespace stoker::engine
