// SPDX-License-Identifier: Apache-2.0
// RegNet: Radosavovic et al., "Designing Network Design Spaces", 2020. Names, shapes, arithmetic, initialisation and
// order of random draws are torchvision's.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <cmath>

#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"

namespace stoker::model {
namespace {

/// The rounded line of widths, equation 2 to 4, as stages.
struct RegNetShape {
  const char* name;
  std::array<int64_t, 4> blocks, channels;  ///< per stage
  int64_t group_width;                      ///< channels of a group, if a stage has as many
  bool squeeze = false;                     ///< the "Y" networks
};

constexpr RegNetShape kRegNetShapes[] = {
    {"regnet_y_400mf", {1, 3, 6, 6}, {48, 104, 208, 440}, 8, true},
    {"regnet_y_800mf", {1, 3, 8, 2}, {64, 144, 320, 784}, 16, true},
    {"regnet_y_1_6gf", {2, 6, 17, 2}, {48, 120, 336, 888}, 24, true},
    {"regnet_y_3_2gf", {2, 5, 13, 1}, {72, 216, 576, 1512}, 24, true},
    {"regnet_y_8gf", {2, 4, 10, 1}, {224, 448, 896, 2016}, 56, true},
    {"regnet_y_16gf", {2, 4, 11, 1}, {224, 448, 1232, 3024}, 112, true},
    {"regnet_y_32gf", {2, 5, 12, 1}, {232, 696, 1392, 3712}, 232, true},
    {"regnet_x_400mf", {1, 2, 7, 12}, {32, 64, 160, 400}, 16},
    {"regnet_x_800mf", {1, 3, 7, 5}, {64, 128, 288, 672}, 16},
    {"regnet_x_1_6gf", {2, 4, 10, 2}, {72, 168, 408, 912}, 24},
    {"regnet_x_3_2gf", {2, 6, 15, 2}, {96, 192, 432, 1008}, 48},
    {"regnet_x_8gf", {2, 5, 15, 1}, {80, 240, 720, 1920}, 120},
    {"regnet_x_16gf", {2, 6, 13, 1}, {256, 512, 896, 2048}, 128},
    {"regnet_x_32gf", {2, 7, 13, 1}, {336, 672, 1344, 2520}, 168},
};
constexpr int64_t kRegNetStem = 32;

/// 1x1, 3x3 in groups, squeeze and excitation, 1x1. x [B, in, H, W] -> [B, out, H / stride, W / stride].
class RegNetBlock : public torch::nn::Module {
 public:
  RegNetBlock(int64_t in, int64_t out, int64_t stride, const RegNetShape& shape) {
    const auto make = [](const ConvShape& conv, Activation activation) {
      return std::make_shared<ConvNormAct>(conv, NormSettings{}, activation);
    };
    if (in != out || stride != 1) proj_ = register_module("proj", make({in, out, 1, stride}, Activation::none));
    const auto f = register_module("f", std::make_shared<torch::nn::Module>());
    a_ = f->register_module("a", make({in, out}, Activation::relu));
    b_ = f->register_module("b", make({out, out, 3, stride, out / std::min(shape.group_width, out)}, Activation::relu));
    if (shape.squeeze) {
      se_ = f->register_module(
          "se", std::make_shared<SqueezeExcite>(out, in / 4, Activation::relu, SqueezeExcite::Gate::sigmoid));
    }
    c_ = f->register_module("c", make({out, out}, Activation::none));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor out = b_->forward(a_->forward(x));
    out = c_->forward(se_ ? se_->forward(out) : out);
    return out.add_(proj_ ? proj_->forward(x) : x).relu_();
  }

 private:
  std::shared_ptr<ConvNormAct> proj_, a_, b_, c_;
  std::shared_ptr<SqueezeExcite> se_;
};

class RegNet : public ImageModel {
 public:
  RegNet(const RegNetShape& shape, const ModelSpec& spec)
      : channels_(shape.channels.back()), drop_rate_(spec.drop_rate) {
    stem_ = register_module("stem", std::make_shared<ConvNormAct>(ConvShape{spec.in_chans, kRegNetStem, 3, 2},
                                                                  NormSettings{}, Activation::relu));
    add_layer({"stem."});
    const auto trunk = register_module("trunk_output", std::make_shared<torch::nn::Module>());
    int64_t in = kRegNetStem;
    for (size_t i = 0; i < shape.blocks.size(); ++i) {
      const std::string name = "block" + std::to_string(i + 1);
      const auto stage = trunk->register_module(name, std::make_shared<torch::nn::Module>());
      for (int64_t block = 0; block < shape.blocks[i]; ++block) {
        const std::string own = name + "-" + std::to_string(block);
        blocks_.push_back(stage->register_module(
            own, std::make_shared<RegNetBlock>(in, shape.channels[i], block == 0 ? 2 : 1, shape)));
        add_layer({"trunk_output." + name + "." + own + "."});
        in = shape.channels[i];
      }
    }
    if (spec.num_classes > 0) {
      fc_ = register_module("fc", torch::nn::Linear(channels_, spec.num_classes));
      add_layer({head_prefix()});
    }
    initialise();
  }

  torch::Tensor features(torch::Tensor x) override {
    x = stem_->forward(x);                                       // [B, 32, H/2, W/2]
    for (const auto& block : blocks_) x = run_stage(*block, x);  // ... [B, channels, H/32, W/32]
    return x;
  }
  int64_t feature_channels() const override { return channels_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = at::adaptive_avg_pool2d(features(x), {1, 1}).flatten(1);  // [B, channels]
    return fc_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "fc."; }

 private:
  /// Biases of squeeze and excitation keep what LibTorch draws for a convolution, as in torchvision.
  void initialise() {
    for (const auto& part : modules(/*include_self=*/false)) {
      auto* conv = part->as<torch::nn::Conv2d>();
      if (conv == nullptr) continue;
      const double fan_out = static_cast<double>(conv->weight.size(0) * conv->weight[0][0].numel());
      torch::nn::init::normal_(conv->weight, 0, std::sqrt(2 / fan_out));
    }
    if (fc_.is_empty()) return;
    torch::nn::init::normal_(fc_->weight, 0, 0.01);
    torch::nn::init::zeros_(fc_->bias);
  }

  std::shared_ptr<ConvNormAct> stem_;
  std::vector<std::shared_ptr<RegNetBlock>> blocks_;
  torch::nn::Linear fc_{nullptr};
  int64_t channels_;
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_regnet(const ModelSpec& spec) {
  return std::make_shared<RegNet>(shape_named(kRegNetShapes, spec), spec);
}

}  // namespace stoker::model
