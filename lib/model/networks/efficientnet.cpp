// SPDX-License-Identifier: Apache-2.0
// EfficientNet-B0 to B7: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019;
// V2 S, M, L: the same, "EfficientNetV2: Smaller Models and Faster Training", 2021. Names, shapes, arithmetic,
// initialisation and order of random draws are torchvision's.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"

namespace stoker::model {
namespace {

/// A stage of the network; the papers' tables 1 and 4.
struct MbStage {
  int64_t expand, kernel, stride, in, out, blocks;
  bool fused = false;  ///< one convolution in place of a 1x1 and a depthwise one, without squeeze and excitation
};

const std::vector<MbStage> kB0 = {
    {1, 3, 1, 32, 16, 1},  {6, 3, 2, 16, 24, 2},   {6, 5, 2, 24, 40, 2},   {6, 3, 2, 40, 80, 3},
    {6, 5, 1, 80, 112, 3}, {6, 5, 2, 112, 192, 4}, {6, 3, 1, 192, 320, 1},
};
const std::vector<MbStage> kV2S = {
    {1, 3, 1, 24, 24, 2, true}, {4, 3, 2, 24, 48, 4, true}, {4, 3, 2, 48, 64, 4, true},
    {4, 3, 2, 64, 128, 6},      {6, 3, 1, 128, 160, 9},     {6, 3, 2, 160, 256, 15},
};
const std::vector<MbStage> kV2M = {
    {1, 3, 1, 24, 24, 3, true}, {4, 3, 2, 24, 48, 5, true}, {4, 3, 2, 48, 80, 5, true}, {4, 3, 2, 80, 160, 7},
    {6, 3, 1, 160, 176, 14},    {6, 3, 2, 176, 304, 18},    {6, 3, 1, 304, 512, 5},
};
const std::vector<MbStage> kV2L = {
    {1, 3, 1, 32, 32, 4, true}, {4, 3, 2, 32, 64, 7, true}, {4, 3, 2, 64, 96, 7, true}, {4, 3, 2, 96, 192, 10},
    {6, 3, 1, 192, 224, 19},    {6, 3, 2, 224, 384, 25},    {6, 3, 1, 384, 640, 7},
};

struct EfficientNetScale {
  const char* name;
  const std::vector<MbStage>& stages;
  double width, depth;  ///< multiples of the stages' channels and blocks
  NormSettings norm;
  int64_t channels = 0;  ///< channels of the last convolution; 0: four times those before it
};

constexpr NormSettings kUsualNorm{1e-5, 0.1};
constexpr NormSettings kSlowNorm{1e-3, 0.01};  // the larger networks', trained with small batches
constexpr NormSettings kV2Norm{1e-3, 0.1};

const EfficientNetScale kEfficientNetScales[] = {
    {"efficientnet_b0", kB0, 1.0, 1.0, kUsualNorm},   {"efficientnet_b1", kB0, 1.0, 1.1, kUsualNorm},
    {"efficientnet_b2", kB0, 1.1, 1.2, kUsualNorm},   {"efficientnet_b3", kB0, 1.2, 1.4, kUsualNorm},
    {"efficientnet_b4", kB0, 1.4, 1.8, kUsualNorm},   {"efficientnet_b5", kB0, 1.6, 2.2, kSlowNorm},
    {"efficientnet_b6", kB0, 1.8, 2.6, kSlowNorm},    {"efficientnet_b7", kB0, 2.0, 3.1, kSlowNorm},
    {"efficientnet_v2_s", kV2S, 1, 1, kV2Norm, 1280}, {"efficientnet_v2_m", kV2M, 1, 1, kV2Norm, 1280},
    {"efficientnet_v2_l", kV2L, 1, 1, kV2Norm, 1280},
};

/// The nearest multiple of 8, but never less than nine tenths of `channels`.
int64_t multiple_of_eight(double channels) {
  const int64_t nearest = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

MbStage scaled(MbStage stage, const EfficientNetScale& scale) {
  stage.in = multiple_of_eight(static_cast<double>(stage.in) * scale.width);
  stage.out = multiple_of_eight(static_cast<double>(stage.out) * scale.width);
  stage.blocks = static_cast<int64_t>(std::ceil(static_cast<double>(stage.blocks) * scale.depth));
  return stage;
}

/// Inverted bottleneck: 1x1 to more channels, depthwise k x k, squeeze and excitation, 1x1 back; fused: k x k to more
/// channels, 1x1 back, or k x k alone.
/// x [B, in, H, W] -> [B, out, H / stride, W / stride].
class MbConv : public torch::nn::Module {
 public:
  MbConv(const MbStage& shape, const NormSettings& norm, double drop_path_rate)
      : residual_(shape.stride == 1 && shape.in == shape.out), drop_path_rate_(drop_path_rate) {
    const int64_t wide = multiple_of_eight(static_cast<double>(shape.in * shape.expand));
    torch::nn::Sequential block;
    const auto add = [&](const ConvShape& conv, Activation activation) {
      block->push_back(std::make_shared<ConvNormAct>(conv, norm, activation));
    };
    if (shape.fused) {
      add({shape.in, wide == shape.in ? shape.out : wide, shape.kernel, shape.stride}, Activation::silu);
    } else {
      if (wide != shape.in) add({shape.in, wide}, Activation::silu);
      add({wide, wide, shape.kernel, shape.stride, wide}, Activation::silu);
      block->push_back(std::make_shared<SqueezeExcite>(wide, std::max<int64_t>(1, shape.in / 4), Activation::silu,
                                                       SqueezeExcite::Gate::sigmoid));
    }
    if (!shape.fused || wide != shape.in) add({wide, shape.out}, Activation::none);
    block_ = register_module("block", block);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor out = block_->forward(x);
    return residual_ ? drop_path(out, drop_path_rate_, is_training()).add_(x) : out;
  }

 private:
  torch::nn::Sequential block_{nullptr};
  bool residual_;
  double drop_path_rate_;
};

class EfficientNet : public ImageModel {
 public:
  EfficientNet(const EfficientNetScale& scale, const ModelSpec& spec) : drop_rate_(spec.drop_rate) {
    features_ = register_module("features", std::make_shared<torch::nn::Module>());
    const MbStage first = scaled(scale.stages.front(), scale);
    stem_ = features_->register_module(
        "0", std::make_shared<ConvNormAct>(ConvShape{spec.in_chans, first.in, 3, 2}, scale.norm, Activation::silu));
    add_layer({"features.0."});
    add_stages(scale, spec.drop_path_rate);
    const std::string last_name = std::to_string(stages_.size() + 1);
    const int64_t narrow = scaled(scale.stages.back(), scale).out;
    channels_ = scale.channels > 0 ? scale.channels : 4 * narrow;
    last_ = features_->register_module(
        last_name, std::make_shared<ConvNormAct>(ConvShape{narrow, channels_}, scale.norm, Activation::silu));
    add_to_last_layer("features." + last_name + ".");
    if (spec.num_classes > 0) add_classifier(spec.num_classes);
    he_normal_convolutions(*features_);
    if (!classifier_.is_empty()) initialise_classifier();
  }

  torch::Tensor features(torch::Tensor x) override {
    x = stem_->forward(x);                                 // [B, stem, H/2, W/2]
    for (auto& stage : stages_) x = run_stage(*stage, x);  // ... [B, narrow, H/32, W/32]
    return last_->forward(x);
  }
  int64_t feature_channels() const override { return channels_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = at::adaptive_avg_pool2d(features(x), {1, 1}).flatten(1);  // [B, channels]
    return classifier_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "classifier.1."; }

 private:
  void add_stages(const EfficientNetScale& scale, double drop_path_rate) {
    int64_t all_blocks = 0;
    for (const MbStage& stage : scale.stages) all_blocks += scaled(stage, scale).blocks;
    int64_t index = 0;
    for (const MbStage& unscaled : scale.stages) {
      MbStage shape = scaled(unscaled, scale);
      torch::nn::Sequential stage;
      const std::string name = std::to_string(stages_.size() + 1);
      for (int64_t block = 0; block < shape.blocks; ++block, ++index) {
        // Later branches are dropped more often.
        const double rate = drop_path_rate * static_cast<double>(index) / static_cast<double>(all_blocks);
        stage->push_back(std::make_shared<MbConv>(shape, scale.norm, rate));
        add_layer({"features." + name + "." + std::to_string(block) + "."});
        shape.in = shape.out;
        shape.stride = 1;
      }
      stages_.push_back(features_->register_module(name, stage));
    }
  }

  void add_classifier(int64_t num_classes) {
    const auto head = register_module("classifier", std::make_shared<torch::nn::Module>());
    classifier_ = head->register_module("1", torch::nn::Linear(channels_, num_classes));
    add_layer({head_prefix()});
  }

  void initialise_classifier() {
    const double range = 1 / std::sqrt(static_cast<double>(classifier_->weight.size(0)));
    torch::nn::init::uniform_(classifier_->weight, -range, range);
    torch::nn::init::zeros_(classifier_->bias);
  }

  std::shared_ptr<torch::nn::Module> features_;
  std::shared_ptr<ConvNormAct> stem_, last_;
  std::vector<torch::nn::Sequential> stages_;
  torch::nn::Linear classifier_{nullptr};
  int64_t channels_ = 0;
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_efficientnet(const ModelSpec& spec) {
  return std::make_shared<EfficientNet>(shape_named(kEfficientNetScales, spec), spec);
}

}  // namespace stoker::model
