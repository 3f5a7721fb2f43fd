// SPDX-License-Identifier: Apache-2.0
// MobileNetV3: Howard et al., "Searching for MobileNetV3", 2019. Names, shapes, arithmetic, initialisation
// and order of random draws are torchvision's.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/hardswish.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"

namespace stoker::model {
namespace {

constexpr NormSettings kMobileNorm{1e-3, 0.01};
constexpr Activation kRe = Activation::relu, kHs = Activation::hardswish;

/// One block; a row of the paper's tables 1 and 2.
struct MobileBlockShape {
  int64_t in, kernel, wide, out;
  bool squeeze;
  Activation activation;
  int64_t stride;
};

const std::vector<MobileBlockShape> kLargeBlocks = {
    {16, 3, 16, 16, false, kRe, 1},   {16, 3, 64, 24, false, kRe, 2},   {24, 3, 72, 24, false, kRe, 1},
    {24, 5, 72, 40, true, kRe, 2},    {40, 5, 120, 40, true, kRe, 1},   {40, 5, 120, 40, true, kRe, 1},
    {40, 3, 240, 80, false, kHs, 2},  {80, 3, 200, 80, false, kHs, 1},  {80, 3, 184, 80, false, kHs, 1},
    {80, 3, 184, 80, false, kHs, 1},  {80, 3, 480, 112, true, kHs, 1},  {112, 3, 672, 112, true, kHs, 1},
    {112, 5, 672, 160, true, kHs, 2}, {160, 5, 960, 160, true, kHs, 1}, {160, 5, 960, 160, true, kHs, 1},
};
constexpr int64_t kLargeHidden = 1280;

const std::vector<MobileBlockShape> kSmallBlocks = {
    {16, 3, 16, 16, true, kRe, 2},  {16, 3, 72, 24, false, kRe, 2}, {24, 3, 88, 24, false, kRe, 1},
    {24, 5, 96, 40, true, kHs, 2},  {40, 5, 240, 40, true, kHs, 1}, {40, 5, 240, 40, true, kHs, 1},
    {40, 5, 120, 48, true, kHs, 1}, {48, 5, 144, 48, true, kHs, 1}, {48, 5, 288, 96, true, kHs, 2},
    {96, 5, 576, 96, true, kHs, 1}, {96, 5, 576, 96, true, kHs, 1},
};
constexpr int64_t kSmallHidden = 1024;

/// A quarter of the channels, to the nearest multiple of 8 that is not more than a tenth smaller.
int64_t squeezed_channels(int64_t wide) {
  const int64_t quarter = wide / 4;
  const int64_t nearest = std::max<int64_t>(8, (quarter + 4) / 8 * 8);
  return 10 * nearest < 9 * quarter ? nearest + 8 : nearest;
}

/// Inverted bottleneck. x [B, in, H, W] -> [B, out, H / stride, W / stride].
class MobileBlock : public torch::nn::Module {
 public:
  explicit MobileBlock(const MobileBlockShape& shape) : residual_(shape.stride == 1 && shape.in == shape.out) {
    torch::nn::Sequential block;
    if (shape.wide != shape.in) {
      block->push_back(std::make_shared<ConvNormAct>(ConvShape{shape.in, shape.wide}, kMobileNorm, shape.activation));
    }
    block->push_back(std::make_shared<ConvNormAct>(
        ConvShape{shape.wide, shape.wide, shape.kernel, shape.stride, shape.wide}, kMobileNorm, shape.activation));
    if (shape.squeeze) {
      block->push_back(std::make_shared<SqueezeExcite>(shape.wide, squeezed_channels(shape.wide), Activation::relu,
                                                       SqueezeExcite::Gate::hardsigmoid));
    }
    block->push_back(std::make_shared<ConvNormAct>(ConvShape{shape.wide, shape.out}, kMobileNorm, Activation::none));
    block_ = register_module("block", block);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor out = block_->forward(x);
    return residual_ ? out.add_(x) : out;
  }

 private:
  torch::nn::Sequential block_{nullptr};
  bool residual_;
};

class MobileNetV3 : public ImageModel {
 public:
  MobileNetV3(const std::vector<MobileBlockShape>& blocks, int64_t hidden, const ModelSpec& spec)
      : drop_rate_(spec.drop_rate) {
    const auto parts = register_module("features", std::make_shared<torch::nn::Module>());
    stem_ = parts->register_module(
        "0", std::make_shared<ConvNormAct>(ConvShape{spec.in_chans, blocks[0].in, 3, 2}, kMobileNorm, kHs));
    add_layer({"features.0."});
    for (const MobileBlockShape& shape : blocks) {
      const std::string name = std::to_string(blocks_.size() + 1);
      blocks_.push_back(parts->register_module(name, std::make_shared<MobileBlock>(shape)));
      add_layer({"features." + name + "."});
    }
    const std::string last_name = std::to_string(blocks_.size() + 1);
    channels_ = 6 * blocks.back().out;
    last_ = parts->register_module(
        last_name, std::make_shared<ConvNormAct>(ConvShape{blocks.back().out, channels_}, kMobileNorm, kHs));
    add_layer({"features." + last_name + "."});
    if (spec.num_classes > 0) add_classifier(hidden, spec.num_classes);
    he_normal_convolutions(*parts);
    for (auto* linear : {&hidden_, &classifier_}) {
      if (linear->is_empty()) continue;
      torch::nn::init::normal_((*linear)->weight, 0, 0.01);
      torch::nn::init::zeros_((*linear)->bias);
    }
  }

  torch::Tensor features(torch::Tensor x) override {
    x = stem_->forward(x);                                       // [B, 16, H/2, W/2]
    for (const auto& block : blocks_) x = run_stage(*block, x);  // ... [B, narrow, H/32, W/32]
    return last_->forward(x);
  }
  int64_t feature_channels() const override { return channels_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = at::adaptive_avg_pool2d(features(x), {1, 1}).flatten(1);  // [B, channels]
    x = at::hardswish(hidden_(x));
    return classifier_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "classifier.3."; }

 private:
  void add_classifier(int64_t hidden, int64_t num_classes) {
    const auto head = register_module("classifier", std::make_shared<torch::nn::Module>());
    hidden_ = head->register_module("0", torch::nn::Linear(channels_, hidden));
    classifier_ = head->register_module("3", torch::nn::Linear(hidden, num_classes));
    add_layer({"classifier."});
  }

  std::shared_ptr<ConvNormAct> stem_, last_;
  std::vector<std::shared_ptr<MobileBlock>> blocks_;
  torch::nn::Linear hidden_{nullptr}, classifier_{nullptr};
  int64_t channels_ = 0;
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_mobilenet_v3(const ModelSpec& spec) {
  const bool large = spec.name == "mobilenet_v3_large";
  return std::make_shared<MobileNetV3>(large ? kLargeBlocks : kSmallBlocks, large ? kLargeHidden : kSmallHidden, spec);
}

}  // namespace stoker::model
