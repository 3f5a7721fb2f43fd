// SPDX-License-Identifier: Apache-2.0
// Digests of tensors, by which two computations of the same thing are compared without keeping either.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "model/image_model.h"

namespace stoker::engine {

/// XXH3-128, hexadecimal, of type, shape and values; the same on every device and in every memory format. The rows of a
/// tensor with rows are read one after the other, so that no second copy of it is held. Waits for the device.
std::string tensor_digest(const torch::Tensor& tensor);
/// Of names and tensors, in order.
std::string tensor_digest(const std::vector<model::NamedTensor>& tensors);

}  // namespace stoker::engine
