// SPDX-License-Identifier: Apache-2.0
// MobileNetV2: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018. Names, shapes,
// arithmetic, initialisation and order of random draws are torchvision's.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>

#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"

namespace stoker::model {
namespace {

/// The paper's table 2.
struct InvertedStage {
  int64_t expand, out, blocks, stride;
};

constexpr InvertedStage kInvertedStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
constexpr int64_t kV2Stem = 32, kV2Channels = 1280;

/// 1x1 to more channels, depthwise 3x3, 1x1 back without activation. x [B, in, H, W] -> [B, out, H / stride,
/// W / stride].
class InvertedResidual : public torch::nn::Module {
 public:
  InvertedResidual(int64_t in, int64_t out, int64_t stride, int64_t expand) : residual_(stride == 1 && in == out) {
    const int64_t wide = in * expand;
    const auto conv = register_module("conv", std::make_shared<torch::nn::Module>());
    const auto add = [&](const ConvShape& shape) {
      layers_.push_back(conv->register_module(std::to_string(layers_.size()),
                                              std::make_shared<ConvNormAct>(shape, NormSettings{}, Activation::relu6)));
    };
    if (expand != 1) add({in, wide});
    add({wide, wide, 3, stride, wide});
    const size_t place = layers_.size();
    narrow_ = conv->register_module(std::to_string(place), unbiased_conv(wide, out, 1));
    norm_ = conv->register_module(std::to_string(place + 1), torch::nn::BatchNorm2d(out));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor out = x;
    for (const auto& layer : layers_) out = layer->forward(out);
    out = normalise(*norm_, convolve(narrow_, out));
    return residual_ ? out.add_(x) : out;
  }

 private:
  std::vector<std::shared_ptr<ConvNormAct>> layers_;
  torch::nn::Conv2d narrow_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
  bool residual_;
};

class MobileNetV2 : public ImageModel {
 public:
  explicit MobileNetV2(const ModelSpec& spec) : drop_rate_(spec.drop_rate) {
    const auto parts = register_module("features", std::make_shared<torch::nn::Module>());
    stem_ = parts->register_module(
        "0", std::make_shared<ConvNormAct>(ConvShape{spec.in_chans, kV2Stem, 3, 2}, NormSettings{}, Activation::relu6));
    add_layer({"features.0."});
    int64_t in = kV2Stem;
    for (const InvertedStage& stage : kInvertedStages) {
      for (int64_t i = 0; i < stage.blocks; ++i) {
        const std::string name = std::to_string(blocks_.size() + 1);
        blocks_.push_back(parts->register_module(
            name, std::make_shared<InvertedResidual>(in, stage.out, i == 0 ? stage.stride : 1, stage.expand)));
        add_layer({"features." + name + "."});
        in = stage.out;
      }
    }
    const std::string last = std::to_string(blocks_.size() + 1);
    last_ = parts->register_module(
        last, std::make_shared<ConvNormAct>(ConvShape{in, kV2Channels}, NormSettings{}, Activation::relu6));
    add_to_last_layer("features." + last + ".");
    if (spec.num_classes > 0) {
      const auto head = register_module("classifier", std::make_shared<torch::nn::Module>());
      classifier_ = head->register_module("1", torch::nn::Linear(kV2Channels, spec.num_classes));
      add_layer({head_prefix()});
    }
    he_normal_convolutions(*parts);
    if (classifier_.is_empty()) return;
    torch::nn::init::normal_(classifier_->weight, 0, 0.01);
    torch::nn::init::zeros_(classifier_->bias);
  }

  torch::Tensor features(torch::Tensor x) override {
    x = stem_->forward(x);                                       // [B, 32, H/2, W/2]
    for (const auto& block : blocks_) x = run_stage(*block, x);  // ... [B, 320, H/32, W/32]
    return last_->forward(x);
  }
  int64_t feature_channels() const override { return kV2Channels; }

  torch::Tensor forward(torch::Tensor x) override {
    x = at::adaptive_avg_pool2d(features(x), {1, 1}).flatten(1);  // [B, channels]
    return classifier_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "classifier.1."; }

 private:
  std::shared_ptr<ConvNormAct> stem_, last_;
  std::vector<std::shared_ptr<InvertedResidual>> blocks_;
  torch::nn::Linear classifier_{nullptr};
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_mobilenet_v2(const ModelSpec& spec) { return std::make_shared<MobileNetV2>(spec); }

}  // namespace stoker::model
