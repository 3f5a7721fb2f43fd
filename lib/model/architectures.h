// SPDX-License-Identifier: Apache-2.0
// The factories behind make_model(), one per family. Only this room includes this file.
#pragma once

#include <memory>
#include <string>

#include "model/model.h"

namespace stoker::model {

/// ResNet of He et al. 2015 with torchvision's names; `name` is resnet18, 34, 50, 101 or 152.
std::shared_ptr<ImageModel> make_resnet(const ModelSpec& spec);
/// A quick residual network for images of about 28 to 64 pixels.
std::shared_ptr<ImageModel> make_small_cnn(const ModelSpec& spec);
/// Five plain convolutions, the same network as a plain PyTorch script for Fashion-MNIST would write.
std::shared_ptr<ImageModel> make_peer_cnn(const ModelSpec& spec);

}  // namespace stoker::model
