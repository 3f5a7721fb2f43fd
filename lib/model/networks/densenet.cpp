// SPDX-License-Identifier: Apache-2.0
// DenseNet: Huang et al., "Densely Connected Convolutional Networks", 2017. Names, shapes, arithmetic, initialisation
// and order of random draws are torchvision's.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>

#include <array>

#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/batch_norm.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"

namespace stoker::model {
namespace {

struct DenseNetShape {
  const char* name;
  int64_t growth, stem;           ///< channels that a layer adds; of the first convolution
  std::array<int64_t, 4> layers;  ///< per block
};

constexpr DenseNetShape kDenseNetShapes[] = {
    {"densenet121", 32, 64, {6, 12, 24, 16}},
    {"densenet161", 48, 96, {6, 12, 36, 24}},
    {"densenet169", 32, 64, {6, 12, 32, 32}},
    {"densenet201", 32, 64, {6, 12, 48, 32}},
};

/// Norm, relu, 1x1 to four times the growth; norm, relu, 3x3. x [B, in, H, W] -> [B, growth, H, W].
class DenseLayer : public torch::nn::Module {
 public:
  DenseLayer(int64_t in, int64_t growth) {
    norm1_ = register_module("norm1", torch::nn::BatchNorm2d(in));
    conv1_ = register_module("conv1", unbiased_conv(in, 4 * growth, 1));
    norm2_ = register_module("norm2", torch::nn::BatchNorm2d(4 * growth));
    conv2_ = register_module("conv2", unbiased_conv(4 * growth, growth, 3));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor narrow = convolve(conv1_, normalise(*norm1_, x).relu_());
    return convolve(conv2_, normalise(*norm2_, narrow).relu_());
  }

 private:
  torch::nn::BatchNorm2d norm1_{nullptr}, norm2_{nullptr};
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
};

/// Each layer sees the outputs of all before it. x [B, in, H, W] -> [B, in + layers * growth, H, W].
class DenseBlock : public torch::nn::Module {
 public:
  DenseBlock(int64_t in, int64_t growth, int64_t layers) {
    for (int64_t i = 0; i < layers; ++i) {
      layers_.push_back(
          register_module("denselayer" + std::to_string(i + 1), std::make_shared<DenseLayer>(in + i * growth, growth)));
    }
  }
  torch::Tensor forward(const torch::Tensor& x) {
    std::vector<torch::Tensor> maps = {x};
    for (const auto& layer : layers_) maps.push_back(layer->forward(maps.size() == 1 ? x : at::cat(maps, 1)));
    return at::cat(maps, 1);
  }

 private:
  std::vector<std::shared_ptr<DenseLayer>> layers_;
};

/// Half the channels, half the sides.
class Transition : public torch::nn::Module {
 public:
  explicit Transition(int64_t in) {
    norm_ = register_module("norm", torch::nn::BatchNorm2d(in));
    conv_ = register_module("conv", unbiased_conv(in, in / 2, 1));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return at::avg_pool2d(convolve(conv_, normalise(*norm_, x).relu_()), /*kernel_size=*/2, /*stride=*/2);
  }

 private:
  torch::nn::BatchNorm2d norm_{nullptr};
  torch::nn::Conv2d conv_{nullptr};
};

class DenseNet : public ImageModel {
 public:
  DenseNet(const DenseNetShape& shape, const ModelSpec& spec) : channels_(shape.stem), drop_rate_(spec.drop_rate) {
    const auto parts = register_module("features", std::make_shared<torch::nn::Module>());
    conv0_ = parts->register_module("conv0", unbiased_conv(spec.in_chans, shape.stem, 7, 2));
    norm0_ = parts->register_module("norm0", torch::nn::BatchNorm2d(shape.stem));
    add_layer({"features.conv0.", "features.norm0."});
    for (size_t i = 0; i < shape.layers.size(); ++i) {
      const std::string number = std::to_string(i + 1);
      blocks_.push_back(parts->register_module("denseblock" + number,
                                               std::make_shared<DenseBlock>(channels_, shape.growth, shape.layers[i])));
      for (int64_t layer = 1; layer <= shape.layers[i]; ++layer) {
        add_layer({"features.denseblock" + number + ".denselayer" + std::to_string(layer) + "."});
      }
      channels_ += shape.layers[i] * shape.growth;
      if (i + 1 == shape.layers.size()) break;
      transitions_.push_back(parts->register_module("transition" + number, std::make_shared<Transition>(channels_)));
      add_to_last_layer("features.transition" + number + ".");
      channels_ /= 2;
    }
    norm5_ = parts->register_module("norm5", torch::nn::BatchNorm2d(channels_));
    if (spec.num_classes > 0) {
      classifier_ = register_module("classifier", torch::nn::Linear(channels_, spec.num_classes));
      torch::nn::init::zeros_(classifier_->bias);
      add_layer({"features.norm5.", head_prefix()});
    } else {
      add_to_last_layer("features.norm5.");
    }
    for (const auto& part : parts->modules()) {
      if (auto* conv = part->as<torch::nn::Conv2d>()) torch::nn::init::kaiming_normal_(conv->weight);
    }
  }

  torch::Tensor features(torch::Tensor x) override {
    x = normalise(*norm0_, convolve(conv0_, x)).relu_();
    x = at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);  // [B, stem, H/4, W/4]
    for (size_t i = 0; i < blocks_.size(); ++i) {
      x = run_stage(*blocks_[i], x);
      if (i < transitions_.size()) x = run_stage(*transitions_[i], x);
    }
    return normalise(*norm5_, x).relu_();  // [B, channels, H/32, W/32]
  }
  int64_t feature_channels() const override { return channels_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = at::adaptive_avg_pool2d(features(x), {1, 1}).flatten(1);  // [B, channels]
    return classifier_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "classifier."; }

 private:
  torch::nn::Conv2d conv0_{nullptr};
  torch::nn::BatchNorm2d norm0_{nullptr}, norm5_{nullptr};
  std::vector<std::shared_ptr<DenseBlock>> blocks_;
  std::vector<std::shared_ptr<Transition>> transitions_;
  torch::nn::Linear classifier_{nullptr};
  int64_t channels_;
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_densenet(const ModelSpec& spec) {
  return std::make_shared<DenseNet>(shape_named(kDenseNetShapes, spec), spec);
}

}  // namespace stoker::model
