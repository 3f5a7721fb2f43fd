// SPDX-License-Identifier: Apache-2.0
// The factories behind make_model(), one per family. Only this module includes this file.
#pragma once

#include <memory>
#include <string>

#include "model/image_model.h"

namespace stoker::model {

// With num_classes 0 a network that has features() is made without its classifier.

/// ResNet of He et al. 2015 with torchvision's names; `name` is resnet18, 34, 50, 101 or 152.
std::shared_ptr<ImageModel> make_resnet(const ModelSpec& spec);
/// Quick residual networks for images of about 28 to 64 pixels.
std::shared_ptr<ImageModel> make_small_cnn(const ModelSpec& spec);
std::shared_ptr<ImageModel> make_tiny_cnn(const ModelSpec& spec);
/// The nine-layer network of Page 2018, for images of about 32 pixels.
std::shared_ptr<ImageModel> make_resnet9(const ModelSpec& spec);
/// EfficientNet of Tan and Le 2019 with torchvision's names; `name` is efficientnet_b0 ... _b7.
std::shared_ptr<ImageModel> make_efficientnet(const ModelSpec& spec);
/// MobileNetV3 of Howard et al. 2019 with torchvision's names; `name` is mobilenet_v3_small or _large.
std::shared_ptr<ImageModel> make_mobilenet_v3(const ModelSpec& spec);
/// ConvNeXt of Liu et al. 2022 with torchvision's names; `name` is convnext_tiny, _small or _base.
std::shared_ptr<ImageModel> make_convnext(const ModelSpec& spec);
/// Vision Transformer of Dosovitskiy et al. 2021 with torchvision's names; `name` is vit_s_16 or vit_b_16.
std::shared_ptr<ImageModel> make_vision_transformer(const ModelSpec& spec);
/// A few convolutions for spectrograms.
std::shared_ptr<ImageModel> make_spectrogram_cnn(const ModelSpec& spec);
/// Makes the network that a larger one is built on: without its classifier, with features().
using BackboneFactory = std::shared_ptr<ImageModel> (*)(ModelSpec spec);
/// Clips seen sharp and degraded, by a backbone per frame and a ConvLSTM over time.
std::shared_ptr<ImageModel> make_two_stream(const ModelSpec& spec, BackboneFactory make_backbone);
/// Five plain convolutions, the same network as a plain PyTorch script for Fashion-MNIST would write.
std::shared_ptr<ImageModel> make_peer_cnn(const ModelSpec& spec);

}  // namespace stoker::model
