// SPDX-License-Identifier: Apache-2.0
// Small residual networks for images of about 28 to 64 pixels, made to learn fast on a CPU: little work at full size,
// where convolutions are costliest, and channels in multiples of 32, which fill vector and tile registers. tiny_cnn
// does without the block at half size, and sees each position once where it halves: for the first minutes of training.
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "model/architectures.h"
#include "model/layers/batch_norm.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"
#include "model/layers/grid_means.h"

namespace stoker::model {
namespace {

/// Convolution without bias, batch norm, and ReLU by default.
class ConvNorm : public torch::nn::Module {
 public:
  ConvNorm(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    conv_ = register_module("conv", unbiased_conv(in, out, kernel, stride));
    norm_ = register_module("norm", torch::nn::BatchNorm2d(out));
    torch::nn::init::kaiming_normal_(conv_->weight, 0, torch::kFanOut, torch::kReLU);
  }

  torch::Tensor forward(const torch::Tensor& x) { return normalise(*norm_, convolve(conv_, x)).relu_(); }
  torch::Tensor forward_onto(const torch::Tensor& added, const torch::Tensor& x) {
    return normalise(*norm_, convolve(conv_, x)).add_(added).relu_();
  }
  void zero_scale() { torch::nn::init::zeros_(norm_->weight); }

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
};

/// x -> relu(x + f(x)), f two 3x3 convolutions; shape kept.
class SmallResidual : public torch::nn::Module {
 public:
  SmallResidual(int64_t channels, bool zero_init) {
    first_ = register_module("first", std::make_shared<ConvNorm>(channels, channels, 3, 1));
    second_ = register_module("second", std::make_shared<ConvNorm>(channels, channels, 3, 1));
    if (zero_init) second_->zero_scale();
  }

  torch::Tensor forward(const torch::Tensor& x) { return second_->forward_onto(x, first_->forward(x)); }

 private:
  std::shared_ptr<ConvNorm> first_, second_;
};

class SmallCnn : public ImageModel {
  /// The classifier sees kGrid x kGrid averages: on small, centred objects, where something is matters.
  static constexpr int64_t kGrid = 2;

 public:
  SmallCnn(const ModelSpec& spec, bool is_tiny) : channels_(4 * spec.width), drop_rate_(spec.drop_rate) {
    const int64_t width = spec.width, halving_kernel = is_tiny ? 2 : 3;
    stem_ = register_module("stem", std::make_shared<ConvNorm>(spec.in_chans, width, 4, 2));
    if (!is_tiny) block1_ = register_module("block1", std::make_shared<SmallResidual>(width, spec.zero_init_residual));
    down2_ = register_module("down2", std::make_shared<ConvNorm>(width, 2 * width, halving_kernel, 2));
    block2_ = register_module("block2", std::make_shared<SmallResidual>(2 * width, spec.zero_init_residual));
    down3_ = register_module("down3", std::make_shared<ConvNorm>(2 * width, 4 * width, halving_kernel, 2));
    block3_ = register_module("block3", std::make_shared<SmallResidual>(4 * width, spec.zero_init_residual));
    add_layer({"stem."});
    if (block1_) add_layer({"block1."});
    for (const char* prefix : {"down2.", "block2.", "down3.", "block3."}) add_layer({prefix});
    if (spec.num_classes == 0) return;
    fc_ = register_module("fc", torch::nn::Linear(channels_ * kGrid * kGrid, spec.num_classes));
    add_layer({"fc."});
  }

  torch::Tensor features(torch::Tensor x) override {
    x = stem_->forward(x);  // [B, W, H/2, W/2]
    if (block1_) x = run_stage(*block1_, x);
    x = run_stage(*block2_, down2_->forward(x));     // [B, 2W, H/4, W/4]
    return run_stage(*block3_, down3_->forward(x));  // [B, 4W, H/8, W/8]
  }
  int64_t feature_channels() const override { return channels_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = grid_means(features(x), kGrid, kGrid).flatten(1);
    return fc_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "fc."; }

 private:
  std::shared_ptr<ConvNorm> stem_, down2_, down3_;
  std::shared_ptr<SmallResidual> block1_, block2_, block3_;  ///< tiny_cnn has no block1_
  torch::nn::Linear fc_{nullptr};
  int64_t channels_;
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_small_cnn(const ModelSpec& spec) {
  return std::make_shared<SmallCnn>(spec, /*is_tiny=*/false);
}

std::shared_ptr<ImageModel> make_tiny_cnn(const ModelSpec& spec) {
  return std::make_shared<SmallCnn>(spec, /*is_tiny=*/true);
}

}  // namespace stoker::model
