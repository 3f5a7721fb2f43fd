// SPDX-License-Identifier: Apache-2.0
// Swin: Liu et al., "Swin Transformer: Hierarchical Vision Transformer using Shifted Windows", 2021, and "Swin
// Transformer V2", 2022. Names, shapes, arithmetic, initialisation and order of random draws are torchvision's. Maps
// are [B, H, W, C].
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <array>
#include <cmath>

#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/drop_path.h"
#include "model/low_rank.h"

namespace stoker::model {
namespace {

struct SwinShape {
  const char* name;
  int64_t width;                         ///< channels of the first stage; doubled by each of the others
  std::array<int64_t, 4> blocks, heads;  ///< per stage
  bool is_v2 = false;

  int64_t window() const { return is_v2 ? 8 : 7; }  ///< patches on a side
};

constexpr SwinShape kSwinShapes[] = {
    {"swin_t", 96, {2, 2, 6, 2}, {3, 6, 12, 24}},           {"swin_s", 96, {2, 2, 18, 2}, {3, 6, 12, 24}},
    {"swin_b", 128, {2, 2, 18, 2}, {4, 8, 16, 32}},         {"swin_v2_t", 96, {2, 2, 6, 2}, {3, 6, 12, 24}, true},
    {"swin_v2_s", 96, {2, 2, 18, 2}, {3, 6, 12, 24}, true}, {"swin_v2_b", 128, {2, 2, 18, 2}, {4, 8, 16, 32}, true},
};
constexpr int64_t kSwinPatch = 4;  // pixels

torch::nn::LayerNorm swin_norm(int64_t width) { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})); }

/// Rows and columns move up and left by `shift`, those that fall out come back on the other side.
torch::Tensor rolled(torch::Tensor x, int64_t down, int64_t right) {
  const int64_t shifts[] = {down, right};
  for (int64_t side = 0; side < 2; ++side) {
    const int64_t size = x.size(side + 1), shift = (shifts[side] + size) % size;
    if (shift == 0) continue;
    x = at::cat({x.narrow(side + 1, shift, size - shift), x.narrow(side + 1, 0, shift)}, side + 1);
  }
  return x;
}

/// Every patch looks at those of its window, which lies half a window further in every other block.
class WindowAttention : public torch::nn::Module {
 public:
  WindowAttention(const SwinShape& shape, int64_t width, int64_t heads, bool is_shifted)
      : heads_(heads), window_(shape.window()), is_shifted_(is_shifted), is_v2_(shape.is_v2) {
    qkv_ = register_module("qkv", AdaptableLinear(width, 3 * width));
    proj_ = register_module("proj", AdaptableLinear(width, width));
    const int64_t places = 2 * window_ - 1;  // one patch as seen from another: that number of rows or columns further
    if (is_v2_) {
      const torch::Tensor line = at::arange(-(window_ - 1), window_, at::kFloat) / (window_ - 1) * 8;
      const torch::Tensor steps = line.sign() * at::log2(line.abs() + 1) / 3;
      const torch::Tensor rows = steps.view({places, 1}).expand({places, places});
      coordinates_ = register_buffer("relative_coords_table", at::stack({rows, rows.t()}, 2).unsqueeze(0).contiguous());
    } else {
      table_ = register_parameter("relative_position_bias_table", at::zeros({places * places, heads}));
      truncated_normal(table_, 0.02);
    }
    const torch::Tensor row = at::arange(window_).repeat_interleave(window_),
                        column = at::arange(window_).repeat(window_);
    const auto differences = [&](const torch::Tensor& at) { return at.unsqueeze(1) - at.unsqueeze(0) + window_ - 1; };
    index_ = register_buffer("relative_position_index", (differences(row) * places + differences(column)).flatten());
    if (!is_v2_) return;
    scale_ = register_parameter("logit_scale", at::full({heads, 1, 1}, 10.0F).log());
    const auto mlp = register_module("cpb_mlp", std::make_shared<torch::nn::Module>());
    bias1_ = mlp->register_module("0", torch::nn::Linear(2, 512));
    bias2_ = mlp->register_module("2", torch::nn::Linear(torch::nn::LinearOptions(512, heads).bias(false)));
  }

  /// x [B, H, W, C] -> the same shape.
  torch::Tensor forward(const torch::Tensor& x) {
    const int64_t height = x.size(1), width = x.size(2), channels = x.size(3), area = window_ * window_;
    const int64_t below = (window_ - height % window_) % window_, right = (window_ - width % window_) % window_;
    const int64_t rows = (height + below) / window_, columns = (width + right) / window_;  // of windows
    torch::Tensor map = below + right > 0 ? at::constant_pad_nd(x, {0, 0, 0, right, 0, below}) : x;
    const int64_t half = is_shifted_ ? window_ / 2 : 0, down = rows > 1 ? half : 0, along = columns > 1 ? half : 0;
    map = rolled(map, down, along).reshape({-1, rows, window_, columns, window_, channels});
    map = map.permute({0, 1, 3, 2, 4, 5}).reshape({-1, area, channels});  // [B * windows, area, C]

    const torch::Tensor qkv = qkv_->with_bias(map, qkv_bias(channels))
                                  .reshape({-1, area, 3, heads_, channels / heads_})
                                  .permute({2, 0, 3, 1, 4});
    torch::Tensor scores = similarity(qkv[0], qkv[1]) + position_bias();  // [B * windows, heads, area, area]
    if (down + along > 0) {
      scores = scores.reshape({-1, rows * columns, heads_, area, area}) + mask(rows, columns, down, along, x.device());
      scores = scores.reshape({-1, heads_, area, area});
    }
    map = at::matmul(at::softmax(scores, -1), qkv[2]).transpose(1, 2).reshape({-1, area, channels});
    map = proj_(map).reshape({-1, rows, columns, window_, window_, channels}).permute({0, 1, 3, 2, 4, 5});
    map = rolled(map.reshape({-1, rows * window_, columns * window_, channels}), -down, -along);
    return below + right > 0 ? map.narrow(1, 0, height).narrow(2, 0, width).contiguous() : map;
  }

 private:
  /// V2's keys have none: its rows stay 0 and learn nothing.
  torch::Tensor qkv_bias(int64_t channels) const {
    if (!is_v2_) return qkv_->bias;
    return at::cat({qkv_->bias.narrow(0, 0, channels), at::zeros({channels}, qkv_->bias.options()),
                    qkv_->bias.narrow(0, 2 * channels, channels)});
  }

  torch::Tensor similarity(const torch::Tensor& q, const torch::Tensor& k) const {
    if (!is_v2_) return at::matmul(q * (1 / std::sqrt(static_cast<double>(q.size(-1)))), k.transpose(-2, -1));
    const auto unit = [](const torch::Tensor& x) {
      return x / at::norm(x, 2, {-1}, /*keepdim=*/true).clamp_min(1e-12);
    };
    return at::matmul(unit(q), unit(k).transpose(-2, -1)) * scale_.clamp_max(std::log(100.0)).exp();
  }

  /// [1, heads, area, area].
  torch::Tensor position_bias() {
    const int64_t area = window_ * window_;
    const torch::Tensor table = is_v2_ ? bias2_(bias1_(coordinates_).relu_()).view({-1, heads_}) : table_;
    const torch::Tensor bias =
        at::index_select(table, 0, index_).view({area, area, heads_}).permute({2, 0, 1}).contiguous().unsqueeze(0);
    return is_v2_ ? 16 * bias.sigmoid() : bias;
  }

  /// [windows, 1, area, area]: -100 between patches that only the shift has brought together. Kept for the next batch.
  const torch::Tensor& mask(int64_t rows, int64_t columns, int64_t down, int64_t along, const torch::Device& device) {
    const c10::InferenceMode is_kept(false);
    const std::array<int64_t, 4> key = {rows, columns, down, along};
    if (mask_.defined() && mask_key_ == key && mask_.device() == device) return mask_;
    const auto parts = [&](int64_t windows, int64_t shift) {  // 0, in the last window 1, and 2 for what came around
      const torch::Tensor place = at::arange(windows * window_), end = at::zeros_like(place, at::kFloat);
      if (shift == 0) return end;
      return (place >= (windows - 1) * window_).to(at::kFloat) + (place >= windows * window_ - shift).to(at::kFloat);
    };
    const torch::Tensor part = (3 * parts(rows, down).unsqueeze(1) + parts(columns, along))
                                   .view({rows, window_, columns, window_})
                                   .permute({0, 2, 1, 3})
                                   .reshape({rows * columns, 1, window_ * window_});
    const torch::Tensor differs = part.unsqueeze(2) != part.unsqueeze(3);
    mask_ = (differs.to(at::kFloat) * -100).to(device);
    mask_key_ = key;
    return mask_;
  }

  AdaptableLinear qkv_{nullptr}, proj_{nullptr};
  torch::nn::Linear bias1_{nullptr}, bias2_{nullptr};
  torch::Tensor table_, coordinates_, index_, scale_, mask_;
  std::array<int64_t, 4> mask_key_{};
  int64_t heads_, window_;
  bool is_shifted_, is_v2_;
};

/// Attention, then two linear maps of each patch, each added to what came in. x [B, H, W, C] -> the same shape.
class SwinBlock : public torch::nn::Module {
 public:
  SwinBlock(const SwinShape& shape, int64_t width, int64_t heads, bool is_shifted, double drop_path_rate)
      : is_v2_(shape.is_v2), drop_path_rate_(drop_path_rate) {
    norm1_ = register_module("norm1", swin_norm(width));
    attention_ = register_module("attn", std::make_shared<WindowAttention>(shape, width, heads, is_shifted));
    norm2_ = register_module("norm2", swin_norm(width));
    const auto mlp = register_module("mlp", std::make_shared<torch::nn::Module>());
    widen_ = mlp->register_module("0", AdaptableLinear(width, 4 * width));
    narrow_ = mlp->register_module("3", AdaptableLinear(4 * width, width));
    for (const auto& layer : {widen_, narrow_}) {  // drawn again below, as torchvision does
      torch::nn::init::xavier_uniform_(layer->weight);
      torch::nn::init::normal_(layer->bias, 0, 1e-6);
    }
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const auto drop = [&](const torch::Tensor& branch) { return drop_path(branch, drop_path_rate_, is_training()); };
    const auto mlp = [&](const torch::Tensor& y) { return narrow_(at::gelu(widen_(y))); };
    if (is_v2_) {
      const torch::Tensor seen = x + drop(norm1_(attention_->forward(x)));
      return seen + drop(norm2_(mlp(seen)));
    }
    const torch::Tensor seen = x + drop(attention_->forward(norm1_(x)));
    return seen + drop(mlp(norm2_(seen)));
  }

 private:
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
  std::shared_ptr<WindowAttention> attention_;
  AdaptableLinear widen_{nullptr}, narrow_{nullptr};
  bool is_v2_;
  double drop_path_rate_;
};

/// Four patches become one of twice the channels. x [B, H, W, C] -> [B, ceil(H / 2), ceil(W / 2), 2 C].
class PatchMerging : public torch::nn::Module {
 public:
  PatchMerging(int64_t width, bool is_v2) : is_v2_(is_v2) {
    reduction_ =
        register_module("reduction", AdaptableLinear(torch::nn::LinearOptions(4 * width, 2 * width).bias(false)));
    norm_ = register_module("norm", swin_norm(is_v2 ? 2 * width : 4 * width));
  }

  torch::Tensor forward(torch::Tensor x) {
    const int64_t below = x.size(1) % 2, right = x.size(2) % 2, channels = x.size(3);
    if (below + right > 0) x = at::constant_pad_nd(x, {0, 0, 0, right, 0, below});
    const int64_t height = x.size(1) / 2, width = x.size(2) / 2;
    x = x.reshape({-1, height, 2, width, 2, channels}).permute({0, 1, 3, 4, 2, 5});
    x = x.reshape({-1, height, width, 4 * channels});
    return is_v2_ ? norm_(reduction_(x)) : reduction_(norm_(x));
  }

 private:
  AdaptableLinear reduction_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  bool is_v2_;
};

class SwinTransformer : public ImageModel {
 public:
  SwinTransformer(const SwinShape& shape, const ModelSpec& spec) : channels_(shape.width), drop_rate_(spec.drop_rate) {
    const auto parts = register_module("features", std::make_shared<torch::nn::Module>());
    const auto stem = parts->register_module("0", std::make_shared<torch::nn::Module>());
    patches_ = stem->register_module(
        "0", torch::nn::Conv2d(torch::nn::Conv2dOptions(spec.in_chans, channels_, kSwinPatch).stride(kSwinPatch)));
    stem_norm_ = stem->register_module("2", swin_norm(channels_));
    add_layer({"features.0."});
    add_stages(*parts, shape, spec.drop_path_rate);
    norm_ = register_module("norm", swin_norm(channels_));
    add_to_last_layer("norm.");
    if (spec.num_classes > 0) {
      head_ = register_module("head", torch::nn::Linear(channels_, spec.num_classes));
      add_layer({head_prefix()});
    }
    for (const auto& part : modules(/*include_self=*/false)) {
      auto* const linear = part->as<torch::nn::Linear>();
      if (linear == nullptr) continue;
      truncated_normal(linear->weight, 0.02);
      if (linear->bias.defined()) torch::nn::init::zeros_(linear->bias);
    }
  }

  torch::Tensor features(torch::Tensor x) override {
    x = stem_norm_(patches_(x).permute({0, 2, 3, 1}));  // [B, H/4, W/4, width]
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      if (stage > 0) x = run_stage(*merges_[stage - 1], x);
      for (const auto& block : stages_[stage]) x = run_stage(*block, x);
    }
    return norm_(x).permute({0, 3, 1, 2});  // [B, channels, H/32, W/32]
  }
  int64_t feature_channels() const override { return channels_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = at::adaptive_avg_pool2d(features(x), {1, 1}).flatten(1);  // [B, channels]
    return head_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "head."; }
  std::vector<std::string> no_weight_decay() const override {
    return {"relative_position_bias_table", "logit_scale", "cpb_mlp"};
  }

 private:
  void add_stages(torch::nn::Module& parts, const SwinShape& shape, double drop_path_rate) {
    int64_t all_blocks = 0, index = 0;
    for (const int64_t count : shape.blocks) all_blocks += count;
    for (size_t stage = 0; stage < shape.blocks.size(); ++stage) {
      std::vector<std::string> prefixes;  // the merging trains as fast as the block that follows it
      if (stage > 0) {
        const std::string name = std::to_string(2 * stage);
        merges_.push_back(parts.register_module(name, std::make_shared<PatchMerging>(channels_, shape.is_v2)));
        prefixes.push_back("features." + name + ".");
        channels_ *= 2;
      }
      const std::string name = std::to_string(2 * stage + 1);
      const auto blocks = parts.register_module(name, std::make_shared<torch::nn::Module>());
      stages_.emplace_back();
      for (int64_t i = 0; i < shape.blocks[stage]; ++i, ++index) {
        const double rate = drop_path_rate * static_cast<double>(index) / static_cast<double>(all_blocks - 1);
        const auto block = std::make_shared<SwinBlock>(shape, channels_, shape.heads[stage], i % 2 == 1, rate);
        stages_.back().push_back(blocks->register_module(std::to_string(i), block));
        prefixes.push_back("features." + name + "." + std::to_string(i) + ".");
        add_layer(prefixes);
        prefixes.clear();
      }
    }
  }

  torch::nn::Conv2d patches_{nullptr};
  torch::nn::LayerNorm stem_norm_{nullptr}, norm_{nullptr};
  std::vector<std::vector<std::shared_ptr<SwinBlock>>> stages_;
  std::vector<std::shared_ptr<PatchMerging>> merges_;
  torch::nn::Linear head_{nullptr};
  int64_t channels_;
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_swin_transformer(const ModelSpec& spec) {
  return std::make_shared<SwinTransformer>(shape_named(kSwinShapes, spec), spec);
}

}  // namespace stoker::model
