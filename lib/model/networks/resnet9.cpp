// SPDX-License-Identifier: Apache-2.0
// The nine-layer residual network with which Page 2018 ("How to train your ResNet") led DAWNBench on
// CIFAR-10: 94 % in 24 epochs. `width` is the number of channels at full size, 64 there.
#include <ATen/ops/amax.h>
#include <ATen/ops/max_pool2d.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "model/architectures.h"
#include "model/layers/batch_norm.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"

namespace stoker::model {
namespace {

constexpr double kLogitScale = 0.125;  // keeps the softmax of a fresh network soft

/// relu(norm(conv(x))): 3x3, the size is kept.
class NineConv : public torch::nn::Module {
 public:
  NineConv(int64_t in, int64_t out) {
    conv_ = register_module("conv", unbiased_conv(in, out, 3));
    norm_ = register_module("norm", torch::nn::BatchNorm2d(out));
    torch::nn::init::kaiming_normal_(conv_->weight, 0, torch::kFanOut, torch::kReLU);
  }

  torch::Tensor forward(const torch::Tensor& x) { return normalise(*norm_, convolve(conv_, x)).relu_(); }
  void zero_scale() { torch::nn::init::zeros_(norm_->weight); }

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
};

/// [B, in, H, W] -> [B, out, H/2, W/2]; with a residual branch x + f(x) of two convolutions after it, or
/// without.
class NineStage : public torch::nn::Module {
 public:
  NineStage(int64_t in, int64_t out, bool has_residual, bool zero_init) {
    down_ = register_module("down", std::make_shared<NineConv>(in, out));
    if (!has_residual) return;
    first_ = register_module("first", std::make_shared<NineConv>(out, out));
    second_ = register_module("second", std::make_shared<NineConv>(out, out));
    if (zero_init) second_->zero_scale();
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor pooled = at::max_pool2d(down_->forward(x), {2, 2});
    return first_ ? pooled + second_->forward(first_->forward(pooled)) : pooled;
  }

 private:
  std::shared_ptr<NineConv> down_, first_, second_;
};

class ResNet9 : public ImageModel {
 public:
  explicit ResNet9(const ModelSpec& spec) : channels_(8 * spec.width), drop_rate_(spec.drop_rate) {
    const int64_t width = spec.width;
    const bool zero = spec.zero_init_residual;
    stem_ = register_module("stem", std::make_shared<NineConv>(spec.in_chans, width));
    layer1_ = register_module("layer1", std::make_shared<NineStage>(width, 2 * width, true, zero));
    layer2_ = register_module("layer2", std::make_shared<NineStage>(2 * width, 4 * width, false, zero));
    layer3_ = register_module("layer3", std::make_shared<NineStage>(4 * width, 8 * width, true, zero));
    for (const char* prefix : {"stem.", "layer1.", "layer2.", "layer3."}) add_layer({prefix});
    if (spec.num_classes == 0) return;
    fc_ = register_module("fc", torch::nn::Linear(channels_, spec.num_classes));
    add_layer({"fc."});
  }

  torch::Tensor features(torch::Tensor x) override {
    x = run_stage(*layer1_, stem_->forward(x));  // [B, 2W, H/2, W/2]
    x = run_stage(*layer2_, x);                  // [B, 4W, H/4, W/4]
    return run_stage(*layer3_, x);               // [B, 8W, H/8, W/8]
  }
  int64_t feature_channels() const override { return channels_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = at::amax(features(x), {2, 3});  // [B, 8W]
    return fc_(drop_out(x, drop_rate_, is_training())) * kLogitScale;
  }

  std::string head_prefix() const override { return "fc."; }

 private:
  std::shared_ptr<NineConv> stem_;
  std::shared_ptr<NineStage> layer1_, layer2_, layer3_;
  torch::nn::Linear fc_{nullptr};
  int64_t channels_;
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_resnet9(const ModelSpec& spec) { return std::make_shared<ResNet9>(spec); }

}  // namespace stoker::model
