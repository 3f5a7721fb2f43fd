// SPDX-License-Identifier: Apache-2.0
// ResNet: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", 2015; ResNeXt: Xie et al., "Aggregated
// Residual Transformations", 2017; wide ResNet: Zagoruyko and Komodakis, "Wide Residual Networks", 2016. Names, shapes,
// arithmetic, initialisation and even the order of random draws are torchvision's. Bottlenecks are "v1.5": the stride
// is in the 3x3 convolution.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>

#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/batch_norm.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"

namespace stoker::model {
namespace {

/// x [B, in, H, W] -> [B, planes * expansion, H / stride, W / stride].
class ResidualBlock : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x) = 0;
  /// The batch norm before the addition.
  virtual torch::nn::BatchNorm2d last_norm() const = 0;

 protected:
  void register_downsample(torch::nn::Sequential downsample) {
    if (!downsample.is_empty()) downsample_ = register_module("downsample", std::move(downsample));
  }
  torch::Tensor shortcut(const torch::Tensor& x) {
    if (downsample_.is_empty()) return x;
    return normalise(dynamic_cast<torch::nn::BatchNorm2dImpl&>(*downsample_->ptr(1)),
                     downsample_->at<torch::nn::Conv2dImpl>(0).forward(x));
  }

 private:
  torch::nn::Sequential downsample_{nullptr};
};

/// 3x3, 3x3.
class BasicBlock : public ResidualBlock {
 public:
  BasicBlock(int64_t in, int64_t planes, int64_t stride, torch::nn::Sequential downsample) {
    conv1_ = register_module("conv1", unbiased_conv(in, planes, 3, stride));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(planes));
    conv2_ = register_module("conv2", unbiased_conv(planes, planes, 3, 1));
    bn2_ = register_module("bn2", torch::nn::BatchNorm2d(planes));
    register_downsample(std::move(downsample));
  }

  torch::Tensor forward(const torch::Tensor& x) override {
    const torch::Tensor out = normalise(*bn1_, convolve(conv1_, x)).relu_();
    return normalise(*bn2_, convolve(conv2_, out)).add_(shortcut(x)).relu_();
  }
  torch::nn::BatchNorm2d last_norm() const override { return bn2_; }

 private:
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr}, bn2_{nullptr};
};

/// 1x1 to `groups` times `group_width` channels for each 64 planes, 3x3 in groups, 1x1 to four times the planes.
class Bottleneck : public ResidualBlock {
 public:
  Bottleneck(int64_t in, int64_t planes, int64_t stride, int64_t groups, int64_t group_width,
             torch::nn::Sequential downsample) {
    const int64_t width = planes * group_width / 64 * groups;
    conv1_ = register_module("conv1", unbiased_conv(in, width, 1, 1));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(width));
    conv2_ = register_module("conv2", unbiased_conv(width, width, 3, stride, groups));
    bn2_ = register_module("bn2", torch::nn::BatchNorm2d(width));
    conv3_ = register_module("conv3", unbiased_conv(width, planes * 4, 1, 1));
    bn3_ = register_module("bn3", torch::nn::BatchNorm2d(planes * 4));
    register_downsample(std::move(downsample));
  }

  torch::Tensor forward(const torch::Tensor& x) override {
    torch::Tensor out = normalise(*bn1_, conv1_(x)).relu_();
    out = normalise(*bn2_, convolve(conv2_, out)).relu_();
    return normalise(*bn3_, conv3_(out)).add_(shortcut(x)).relu_();
  }
  torch::nn::BatchNorm2d last_norm() const override { return bn3_; }

 private:
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, conv3_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr}, bn2_{nullptr}, bn3_{nullptr};
};

struct ResNetShape {
  const char* name;
  bool bottleneck;
  std::array<int64_t, 4> blocks;  ///< per stage
  int64_t groups = 1;             ///< groups of the bottlenecks' 3x3 convolutions
  int64_t group_width = 64;       ///< channels of a group in the first stage
};

constexpr ResNetShape kResNetShapes[] = {
    {"resnet18", false, {2, 2, 2, 2}},
    {"resnet34", false, {3, 4, 6, 3}},
    {"resnet50", true, {3, 4, 6, 3}},
    {"resnet101", true, {3, 4, 23, 3}},
    {"resnet152", true, {3, 8, 36, 3}},
    {"resnext50_32x4d", true, {3, 4, 6, 3}, 32, 4},
    {"resnext101_32x8d", true, {3, 4, 23, 3}, 32, 8},
    {"resnext101_64x4d", true, {3, 4, 23, 3}, 64, 4},
    {"wide_resnet50_2", true, {3, 4, 6, 3}, 1, 128},
    {"wide_resnet101_2", true, {3, 4, 23, 3}, 1, 128},
};

/// Blocks named "0", "1", ...
class ResNetStage : public torch::nn::Module {
 public:
  void add(std::shared_ptr<ResidualBlock> block) {
    blocks_.push_back(register_module(std::to_string(blocks_.size()), std::move(block)));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (const auto& block : blocks_) x = block->forward(x);
    return x;
  }
  const std::vector<std::shared_ptr<ResidualBlock>>& blocks() const { return blocks_; }

 private:
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
};

class ResNet : public ImageModel {
 public:
  ResNet(const ResNetShape& shape, const ModelSpec& spec) : shape_(shape), drop_rate_(spec.drop_rate) {
    conv1_ = register_module("conv1", unbiased_conv(spec.in_chans, 64, 7, 2));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(64));
    add_layer({"conv1.", "bn1."});
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      const std::string name = "layer" + std::to_string(stage + 1);
      stages_[stage] = register_module(name, std::make_shared<ResNetStage>());
      add_blocks(*stages_[stage], int64_t{64} << stage, shape.blocks[stage], stage == 0 ? 1 : 2);
      for (int64_t i = 0; i < shape.blocks[stage]; ++i) add_layer({name + "." + std::to_string(i) + "."});
    }
    if (spec.num_classes > 0) {
      fc_ = register_module("fc", torch::nn::Linear(in_planes_, spec.num_classes));
      add_layer({"fc."});
    }
    initialise(spec.zero_init_residual);
  }

  torch::Tensor features(torch::Tensor x) override {
    x = normalise(*bn1_, conv1_(x)).relu_();
    x = at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);  // [B, 64, H/4, W/4]
    for (const auto& stage : stages_) x = run_stage(*stage, x);
    return x;  // [B, channels, H/32, W/32]
  }
  int64_t feature_channels() const override { return in_planes_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = at::adaptive_avg_pool2d(features(x), {1, 1}).flatten(1);  // [B, channels]
    return fc_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "fc."; }

 private:
  void add_blocks(ResNetStage& stage, int64_t planes, int64_t count, int64_t stride) {
    const int64_t out = planes * (shape_.bottleneck ? 4 : 1);
    for (int64_t i = 0; i < count; ++i) {
      torch::nn::Sequential downsample{nullptr};
      if (i == 0 && (stride != 1 || in_planes_ != out)) {
        downsample = torch::nn::Sequential(unbiased_conv(in_planes_, out, 1, stride), torch::nn::BatchNorm2d(out));
      }
      const int64_t block_stride = i == 0 ? stride : 1;
      if (shape_.bottleneck) {
        stage.add(std::make_shared<Bottleneck>(in_planes_, planes, block_stride, shape_.groups, shape_.group_width,
                                               std::move(downsample)));
      } else {
        stage.add(std::make_shared<BasicBlock>(in_planes_, planes, block_stride, std::move(downsample)));
      }
      in_planes_ = out;
    }
  }

  void initialise(bool zero_init_residual) {
    torch::NoGradGuard no_grad;
    he_normal_convolutions(*this);
    if (!zero_init_residual) return;
    for (const auto& stage : stages_) {
      for (const auto& block : stage->blocks()) block->last_norm()->weight.zero_();
    }
  }

  const ResNetShape& shape_;
  int64_t in_planes_ = 64;
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  std::array<std::shared_ptr<ResNetStage>, 4> stages_;
  torch::nn::Linear fc_{nullptr};
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_resnet(const ModelSpec& spec) {
  return std::make_shared<ResNet>(shape_named(kResNetShapes, spec), spec);
}

}  // namespace stoker::model
