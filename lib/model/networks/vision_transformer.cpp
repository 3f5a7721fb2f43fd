// SPDX-License-Identifier: Apache-2.0
// Vision Transformer: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021. Names, shapes, arithmetic,
// initialisation and order of random draws are torchvision's; the small one has timm's sizes.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/attention.h"
#include "model/layers/drop_path.h"
#include "model/low_rank.h"

namespace stoker::model {
namespace {

struct VitShape {
  const char* name;
  int64_t width, heads, mlp_width, blocks;
  int64_t patch;  ///< pixels
};

constexpr VitShape kVitShapes[] = {{"vit_s_16", 384, 6, 1536, 12, 16},
                                   {"vit_b_16", 768, 12, 3072, 12, 16},
                                   {"vit_b_32", 768, 12, 3072, 12, 32},
                                   {"vit_l_16", 1024, 16, 4096, 24, 16}};

torch::nn::LayerNorm vit_norm(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(1e-6));
}

/// Every token looks at every token. x [B, S, E] -> [B, S, E]. Names as torch.nn.MultiheadAttention.
class SelfAttention : public torch::nn::Module, public LowRankLayer {
 public:
  SelfAttention(int64_t width, int64_t heads) : heads_(heads) {
    in_weight_ = register_parameter("in_proj_weight", torch::empty({3 * width, width}));
    in_bias_ = register_parameter("in_proj_bias", torch::zeros({3 * width}));
    out_ = register_module("out_proj", AdaptableLinear(width, width));
    torch::nn::init::xavier_uniform_(in_weight_);
    torch::nn::init::zeros_(out_->bias);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const int64_t tokens = x.size(1), width = x.size(2);
    // -1 for the batch: what is recorded for export then holds for any number of images.
    const torch::Tensor qkv = low_rank_.apply(x, in_weight_, in_bias_, is_training())
                                  .reshape({-1, tokens, 3, heads_, width / heads_})
                                  .permute({2, 0, 3, 1, 4});  // [3, B, heads, S, E / heads]
    const torch::Tensor mixed = attend(qkv[0], qkv[1], qkv[2]);
    return out_(mixed.transpose(1, 2).reshape({-1, tokens, width}));
  }

  void add_low_rank(int64_t rank) override { low_rank_.add_to(*this, "in_proj_", in_weight_, rank); }

 private:
  torch::Tensor in_weight_, in_bias_;  // [3E, E], [3E]
  LowRank low_rank_;
  AdaptableLinear out_{nullptr};
  int64_t heads_;
};

/// Attention, then two linear maps of each token, each added to what came in. x [B, S, E] -> [B, S, E].
class VitBlock : public torch::nn::Module {
 public:
  VitBlock(const VitShape& shape, double drop_path_rate) : drop_path_rate_(drop_path_rate) {
    norm1_ = register_module("ln_1", vit_norm(shape.width));
    attention_ = register_module("self_attention", std::make_shared<SelfAttention>(shape.width, shape.heads));
    norm2_ = register_module("ln_2", vit_norm(shape.width));
    const auto mlp = register_module("mlp", std::make_shared<torch::nn::Module>());
    widen_ = mlp->register_module("0", AdaptableLinear(shape.width, shape.mlp_width));
    narrow_ = mlp->register_module("3", AdaptableLinear(shape.mlp_width, shape.width));
    for (const auto& layer : {widen_, narrow_}) {
      torch::nn::init::xavier_uniform_(layer->weight);
      torch::nn::init::normal_(layer->bias, 0, 1e-6);
    }
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor seen = x + drop_path(attention_->forward(norm1_(x)), drop_path_rate_, is_training());
    return seen + drop_path(narrow_(at::gelu(widen_(norm2_(seen)))), drop_path_rate_, is_training());
  }

 private:
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
  std::shared_ptr<SelfAttention> attention_;
  AdaptableLinear widen_{nullptr}, narrow_{nullptr};
  double drop_path_rate_;
};

class VisionTransformer : public ImageModel {
 public:
  VisionTransformer(const VitShape& shape, const ModelSpec& spec)
      : size_(spec.img_size), patch_(shape.patch), drop_rate_(spec.drop_rate) {
    class_token_ = register_parameter("class_token", torch::zeros({1, 1, shape.width}));
    patches_ = register_module(
        "conv_proj",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(spec.in_chans, shape.width, shape.patch).stride(shape.patch)));
    const auto [rows, columns] = VisionTransformer::position_grid();
    const auto encoder = register_module("encoder", std::make_shared<torch::nn::Module>());
    positions_ = encoder->register_parameter("pos_embedding",
                                             torch::empty({1, rows * columns + 1, shape.width}).normal_(0, 0.02));
    add_layer({"class_token", "conv_proj.", "encoder.pos_embedding"});
    add_blocks(*encoder, shape, spec.drop_path_rate);
    norm_ = encoder->register_module("ln", vit_norm(shape.width));
    add_to_last_layer("encoder.ln.");
    const auto heads = register_module("heads", std::make_shared<torch::nn::Module>());
    classifier_ = heads->register_module("head", torch::nn::Linear(shape.width, spec.num_classes));
    add_layer({head_prefix()});
    initialise();
  }

  torch::Tensor forward(torch::Tensor x) override {
    require_size(x);
    x = patches_(x).flatten(2).transpose(1, 2);                                   // [B, patches, E]
    x = at::cat({class_token_.expand_as(x.narrow(1, 0, 1)), x}, 1) + positions_;  // [B, 1 + patches, E]
    for (const auto& block : blocks_) x = run_stage(*block, x);
    return classifier_(drop_out(norm_(x).select(1, 0), drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "heads.head."; }
  std::vector<std::string> no_weight_decay() const override { return {"class_token", "pos_embedding"}; }
  std::array<int64_t, 2> position_grid() const override { return {size_.height / patch_, size_.width / patch_}; }

 private:
  void add_blocks(torch::nn::Module& encoder, const VitShape& shape, double drop_path_rate) {
    const auto layers = encoder.register_module("layers", std::make_shared<torch::nn::Module>());
    for (int64_t i = 0; i < shape.blocks; ++i) {
      const std::string name = "encoder_layer_" + std::to_string(i);
      const double rate = drop_path_rate * static_cast<double>(i) / static_cast<double>(shape.blocks - 1);
      blocks_.push_back(layers->register_module(name, std::make_shared<VitBlock>(shape, rate)));
      add_layer({"encoder.layers." + name + "."});
    }
  }

  void initialise() {
    truncated_normal(patches_->weight, std::sqrt(1 / static_cast<double>(patches_->weight[0].numel())));
    for (const torch::Tensor& zero : {patches_->bias, classifier_->weight, classifier_->bias}) {
      torch::nn::init::zeros_(zero);
    }
  }

  void require_size(const torch::Tensor& x) const {
    if (x.size(2) == size_.height && x.size(3) == size_.width) return;
    throw core::Error(core::ErrorKind::config,
                      core::format("a ViT made for images of {} x {} pixels was given {} x {} (height x width)",
                                   size_.height, size_.width, x.size(2), x.size(3)),
                      "use --img-size " + config::image_size_text({x.size(2), x.size(3)}));
  }

  torch::Tensor class_token_, positions_;  // [1, 1, E], [1, 1 + patches, E]
  torch::nn::Conv2d patches_{nullptr};
  std::vector<std::shared_ptr<VitBlock>> blocks_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear classifier_{nullptr};
  config::ImageSize size_;
  int64_t patch_;  // pixels
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_vision_transformer(const ModelSpec& spec) {
  const VitShape& shape = shape_named(kVitShapes, spec);
  const int64_t patch = shape.patch;
  if (spec.img_size.height % patch != 0 || spec.img_size.width % patch != 0) {
    const auto fitting = [patch](int64_t side) { return std::max(patch, side / patch * patch); };
    throw core::Error(
        core::ErrorKind::config,
        core::format("{} cuts images into patches of {} pixels, but img-size is {}", spec.name, patch,
                     config::image_size_text(spec.img_size)),
        "use --img-size " + config::image_size_text({fitting(spec.img_size.height), fitting(spec.img_size.width)}));
  }
  if (spec.num_classes == 0) {
    throw core::Error(core::ErrorKind::config, spec.name + " gives no feature map, which a larger network needs of it",
                      "choose a convolutional network, such as efficientnet_b0");
  }
  return std::make_shared<VisionTransformer>(shape, spec);
}

}  // namespace stoker::model
