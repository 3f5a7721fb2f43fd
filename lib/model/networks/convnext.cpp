// SPDX-License-Identifier: Apache-2.0
// ConvNeXt: Liu et al., "A ConvNet for the 2020s", 2022. Names, shapes, arithmetic, initialisation and order
// of random draws are torchvision's.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <array>

#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/drop_path.h"
#include "model/low_rank.h"

namespace stoker::model {
namespace {

struct ConvNextShape {
  const char* name;
  std::array<int64_t, 4> channels, blocks;  ///< per stage
};

constexpr ConvNextShape kConvNextShapes[] = {
    {"convnext_tiny", {96, 192, 384, 768}, {3, 3, 9, 3}},
    {"convnext_small", {96, 192, 384, 768}, {3, 3, 27, 3}},
    {"convnext_base", {128, 256, 512, 1024}, {3, 3, 27, 3}},
    {"convnext_large", {192, 384, 768, 1536}, {3, 3, 27, 3}},
};

constexpr double kLayerNormEps = 1e-6;
constexpr double kLayerScale = 1e-6;  // how strong a residual branch is at first

/// Layer norm over the channels of each pixel. x [B, C, H, W] -> the same shape, channels-last in memory.
class LayerNorm2d : public torch::nn::Module {
 public:
  explicit LayerNorm2d(int64_t channels) : channels_(channels) {
    weight_ = register_parameter("weight", torch::ones({channels}));
    bias_ = register_parameter("bias", torch::zeros({channels}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return at::layer_norm(x.permute({0, 2, 3, 1}), {channels_}, weight_, bias_, kLayerNormEps).permute({0, 3, 1, 2});
  }

 private:
  int64_t channels_;
  torch::Tensor weight_, bias_;  // [C]
};

/// Depthwise 7x7, layer norm, and two linear maps of each pixel. x [B, C, H, W] -> the same shape.
class ConvNextBlock : public torch::nn::Module {
 public:
  ConvNextBlock(int64_t channels, double drop_path_rate) : drop_path_rate_(drop_path_rate) {
    layer_scale_ = register_parameter("layer_scale", torch::ones({channels, 1, 1}) * kLayerScale);
    const auto block = register_module("block", std::make_shared<torch::nn::Module>());
    conv_ = block->register_module(
        "0", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, channels, 7).padding(3).groups(channels)));
    norm_ =
        block->register_module("2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels}).eps(kLayerNormEps)));
    widen_ = block->register_module("3", AdaptableLinear(channels, 4 * channels));
    narrow_ = block->register_module("5", AdaptableLinear(4 * channels, channels));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor out = conv_(x).permute({0, 2, 3, 1});  // [B, H, W, C]
    out = narrow_(at::gelu(widen_(norm_(out)))).permute({0, 3, 1, 2});
    return drop_path(layer_scale_ * out, drop_path_rate_, is_training()).add_(x);
  }

 private:
  torch::Tensor layer_scale_;  // [C, 1, 1]
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  AdaptableLinear widen_{nullptr}, narrow_{nullptr};
  double drop_path_rate_;
};

class ConvNext : public ImageModel {
 public:
  ConvNext(const ConvNextShape& shape, const ModelSpec& spec)
      : channels_(shape.channels.back()), drop_rate_(spec.drop_rate) {
    features_ = register_module("features", std::make_shared<torch::nn::Module>());
    add_part(torch::nn::Sequential(
        torch::nn::Conv2d(torch::nn::Conv2dOptions(spec.in_chans, shape.channels[0], 4).stride(4)),
        std::make_shared<LayerNorm2d>(shape.channels[0])));
    add_layer({"features.0."});
    add_stages(shape, spec.drop_path_rate);
    if (spec.num_classes > 0) {
      const auto head = register_module("classifier", std::make_shared<torch::nn::Module>());
      norm_ = head->register_module("0", std::make_shared<LayerNorm2d>(channels_));
      classifier_ = head->register_module("2", torch::nn::Linear(channels_, spec.num_classes));
      add_layer({"classifier.0.", head_prefix()});
    }
    initialise();
  }

  torch::Tensor features(torch::Tensor x) override {
    for (auto& part : parts_) x = run_stage(*part, x);
    return x;  // [B, channels, H/32, W/32]
  }
  int64_t feature_channels() const override { return channels_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = norm_->forward(at::adaptive_avg_pool2d(features(x), {1, 1})).flatten(1);  // [B, channels]
    return classifier_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "classifier.2."; }
  /// timm's layer scales have one dimension, which is why they do not decay there.
  std::vector<std::string> no_weight_decay() const override { return {"layer_scale"}; }

 private:
  /// Stem, stage, downsampling, stage, ...: "0", "1", ...
  std::string add_part(torch::nn::Sequential part) {
    const std::string name = std::to_string(parts_.size());
    parts_.push_back(features_->register_module(name, std::move(part)));
    return "features." + name + ".";
  }

  void add_stages(const ConvNextShape& shape, double drop_path_rate) {
    int64_t all_blocks = 0;
    for (const int64_t count : shape.blocks) all_blocks += count;
    int64_t index = 0;
    for (size_t stage = 0; stage < shape.channels.size(); ++stage) {
      const int64_t channels = shape.channels[stage];
      std::string before;  // the downsampling trains as fast as the block that follows it
      if (stage > 0) {
        const int64_t in = shape.channels[stage - 1];
        before = add_part(torch::nn::Sequential(
            std::make_shared<LayerNorm2d>(in), torch::nn::Conv2d(torch::nn::Conv2dOptions(in, channels, 2).stride(2))));
      }
      torch::nn::Sequential blocks;
      for (int64_t i = 0; i < shape.blocks[stage]; ++i, ++index) {
        const double rate = drop_path_rate * static_cast<double>(index) / static_cast<double>(all_blocks - 1);
        blocks->push_back(std::make_shared<ConvNextBlock>(channels, rate));
      }
      const std::string prefix = add_part(blocks);
      for (int64_t i = 0; i < shape.blocks[stage]; ++i) {
        const std::string block = prefix + std::to_string(i) + ".";
        add_layer(i == 0 && !before.empty() ? std::vector<std::string>{before, block}
                                            : std::vector<std::string>{block});
      }
    }
  }

  void initialise() {
    const torch::NoGradGuard no_grad;
    const auto fill = [](auto& layer) {
      truncated_normal(layer.weight, 0.02);
      layer.bias.zero_();
    };
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* conv = module->as<torch::nn::Conv2d>()) fill(*conv);
      if (auto* linear = module->as<torch::nn::Linear>()) fill(*linear);
    }
  }

  std::shared_ptr<torch::nn::Module> features_;
  std::vector<torch::nn::Sequential> parts_;
  std::shared_ptr<LayerNorm2d> norm_;
  torch::nn::Linear classifier_{nullptr};
  int64_t channels_;
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_convnext(const ModelSpec& spec) {
  return std::make_shared<ConvNext>(shape_named(kConvNextShapes, spec), spec);
}

}  // namespace stoker::model
