// SPDX-License-Identifier: Apache-2.0
// Which dialects a network's weights are found in; the rows of ResNets, ConvNeXts and ViTs. Sources: the state dicts of
// torchvision 0.14 and timm 1.0, modeling_*.py of Hugging Face's transformers, Facebook's ConvNeXt.
#include "weights/names/families.h"

#include <cmath>

namespace stoker::weights {
namespace {

bool is_named(const std::string& network, const char* family) { return network.rfind(family, 0) == 0; }

}  // namespace

Dialect own_dialect(const std::string& name) { return {name, "", {{"*", "*"}}, {}, 0, ""}; }

std::vector<Dialect> resnet_dialects() {
  const std::string block = "encoder.stages.{s}.layers.{b}.";
  Dialect face{"Hugging Face", "resnet.", {}, {}, 0, ""};
  face.rows = {
      {"embedder.embedder.convolution.*", "conv1.*"},
      {"embedder.embedder.normalization.*", "bn1.*"},
      {block + "shortcut.convolution.*", "layer{s+1}.{b}.downsample.0.*"},
      {block + "shortcut.normalization.*", "layer{s+1}.{b}.downsample.1.*"},
      {block + "layer.{i}.convolution.*", "layer{s+1}.{b}.conv{i+1}.*"},
      {block + "layer.{i}.normalization.*", "layer{s+1}.{b}.bn{i+1}.*"},
      {"classifier.1.*", "fc.*"},
  };
  return {own_dialect("torchvision and timm"), face};
}

std::vector<Dialect> convnext_dialects() {
  Dialect timm{"timm", "", {}, {}, 0, ""};
  const std::string block = "stages.{s}.blocks.{b}.", ours = "features.{2s+1}.{b}.";
  timm.rows = {
      {"stem.{i}.*", "features.0.{i}.*"},        {"stages.{s}.downsample.{i}.*", "features.{2s}.{i}.*"},
      {block + "gamma", ours + "layer_scale"},   {block + "conv_dw.*", ours + "block.0.*"},
      {block + "norm.*", ours + "block.2.*"},    {block + "mlp.fc1.*", ours + "block.3.*"},
      {block + "mlp.fc2.*", ours + "block.5.*"}, {"head.norm.*", "classifier.0.*"},
      {"head.fc.*", "classifier.2.*"},
  };
  Dialect face{"Hugging Face", "convnext.", {}, {}, 0, ""};
  const std::string layer = "encoder.stages.{s}.layers.{b}.";
  face.rows = {
      {"embeddings.patch_embeddings.*", "features.0.0.*"},
      {"embeddings.layernorm.*", "features.0.1.*"},
      {"encoder.stages.{s}.downsampling_layer.{i}.*", "features.{2s}.{i}.*"},
      {layer + "layer_scale_parameter", ours + "layer_scale"},
      {layer + "dwconv.*", ours + "block.0.*"},
      {layer + "layernorm.*", ours + "block.2.*"},
      {layer + "pwconv1.*", ours + "block.3.*"},
      {layer + "pwconv2.*", ours + "block.5.*"},
      {"layernorm.*", "classifier.0.*"},
      {"classifier.*", "classifier.2.*"},
  };
  Dialect first{"Facebook's ConvNeXt", "", {}, {}, 0, ""};
  const std::string unit = "stages.{s}.{b}.";
  first.rows = {
      {"downsample_layers.{s}.{i}.*", "features.{2s}.{i}.*"},
      {unit + "gamma", ours + "layer_scale"},
      {unit + "dwconv.*", ours + "block.0.*"},
      {unit + "norm.*", ours + "block.2.*"},
      {unit + "pwconv1.*", ours + "block.3.*"},
      {unit + "pwconv2.*", ours + "block.5.*"},
      {"norm.*", "classifier.0.*"},
      {"head.*", "classifier.2.*"},
  };
  return {own_dialect("torchvision"), timm, face, first};
}

std::vector<Dialect> vit_dialects() {
  const std::string ours = "encoder.layers.encoder_layer_{i}.";
  Dialect own = own_dialect("torchvision");  // its first releases gave the linear layers names
  own.rows.insert(own.rows.begin(),
                  {{ours + "mlp.linear_1.*", ours + "mlp.0.*"}, {ours + "mlp.linear_2.*", ours + "mlp.3.*"}});
  Dialect timm{"timm", "", {}, {}, 0, ""};
  const std::string block = "blocks.{i}.";
  timm.rows = {
      {"cls_token", "class_token"},
      {"pos_embed", "encoder.pos_embedding"},
      {"patch_embed.proj.*", "conv_proj.*"},
      {block + "norm1.*", ours + "ln_1.*"},
      {block + "attn.qkv.*", ours + "self_attention.in_proj_*"},
      {block + "attn.proj.*", ours + "self_attention.out_proj.*"},
      {block + "norm2.*", ours + "ln_2.*"},
      {block + "mlp.fc1.*", ours + "mlp.0.*"},
      {block + "mlp.fc2.*", ours + "mlp.3.*"},
      {"norm.*", "encoder.ln.*"},
      {"head.*", "heads.head.*"},
  };
  Dialect face{"Hugging Face", "vit.", {}, {"pooler.*", "embeddings.mask_token", "embeddings.position_ids"}, 0, ""};
  const std::string layer = "encoder.layer.{i}.";
  face.rows = {
      {"embeddings.cls_token", "class_token"},
      {"embeddings.position_embeddings", "encoder.pos_embedding"},
      {"embeddings.patch_embeddings.projection.*", "conv_proj.*"},
      {layer + "layernorm_before.*", ours + "ln_1.*"},
      {layer + "attention.attention.query.*", ours + "self_attention.in_proj_*", 0, 3},
      {layer + "attention.attention.key.*", ours + "self_attention.in_proj_*", 1, 3},
      {layer + "attention.attention.value.*", ours + "self_attention.in_proj_*", 2, 3},
      {layer + "attention.output.dense.*", ours + "self_attention.out_proj.*"},
      {layer + "layernorm_after.*", ours + "ln_2.*"},
      {layer + "intermediate.dense.*", ours + "mlp.0.*"},
      {layer + "output.dense.*", ours + "mlp.3.*"},
      {"layernorm.*", "encoder.ln.*"},
      {"classifier.*", "heads.head.*"},
  };
  return {own, timm, face};
}

std::vector<Dialect> densenet_dialects() {
  Dialect own = own_dialect("torchvision and timm");  // the published weights have a dot before the number of a layer
  const std::string layer = "features.denseblock{b}.denselayer{l}.";
  own.rows.insert(own.rows.begin(),
                  {{layer + "norm.{i}.*", layer + "norm{i}.*"}, {layer + "conv.{i}.*", layer + "conv{i}.*"}});
  return {own};
}

std::vector<Dialect> regnet_dialects() {
  Dialect timm{"timm", "", {{"stem.conv.*", "stem.0.*"}, {"stem.bn.*", "stem.1.*"}, {"head.fc.*", "fc.*"}}, {}, 0, ""};
  const std::string block = "s{s}.b{b}.", ours = "trunk_output.block{s}.block{s}-{b-1}.";
  const std::pair<const char*, const char*> layers[] = {
      {"downsample", "proj"}, {"conv1", "f.a"}, {"conv2", "f.b"}, {"conv3", "f.c"}};
  for (const auto& [theirs, own] : layers) {
    timm.rows.push_back({block + theirs + ".conv.*", ours + own + ".0.*"});
    timm.rows.push_back({block + theirs + ".bn.*", ours + own + ".1.*"});
  }
  timm.rows.push_back({block + "se.*", ours + "f.se.*"});
  return {own_dialect("torchvision"), timm};
}

std::vector<Dialect> swin_dialects() {
  const std::string block = "layers.{s}.blocks.{b}.", ours = "features.{2s+1}.{b}.";
  const auto dialect = [&](const char* name, const char* merged, const char* head) {
    return Dialect{name,
                   "",
                   {{"patch_embed.proj.*", "features.0.0.*"},
                    {"patch_embed.norm.*", "features.0.2.*"},
                    {block + "mlp.fc1.*", ours + "mlp.0.*"},
                    {block + "mlp.fc2.*", ours + "mlp.3.*"},
                    {block + "*", ours + "*"},
                    {"layers.{s}.downsample.*", merged},
                    {"norm.*", "norm.*"},
                    {head, "head.*"}},
                   {block + "attn_mask", block + "attn.relative_position_index"},
                   0,
                   ""};
  };
  return {own_dialect("torchvision"), dialect("timm", "features.{2s}.*", "head.fc.*"),
          dialect("Microsoft's Swin", "features.{2s+2}.*", "head.*")};
}

std::vector<Dialect> dialects_of(const std::string& network) {
  if (is_named(network, "resnet") && network != "resnet9") return resnet_dialects();
  if (is_named(network, "resnext") || is_named(network, "wide_resnet")) return {own_dialect("torchvision and timm")};
  if (is_named(network, "efficientnet_v2_")) return efficientnet_v2_dialects(network);
  if (is_named(network, "efficientnet_")) return efficientnet_dialects(network);
  if (network == "mobilenet_v2") return mobilenet_v2_dialects();
  if (is_named(network, "densenet")) return densenet_dialects();
  if (is_named(network, "regnet_")) return regnet_dialects();
  if (is_named(network, "swin_v2_")) return {own_dialect("torchvision")};
  if (is_named(network, "swin_")) return swin_dialects();
  if (is_named(network, "mobilenet_v3_")) return mobilenet_dialects(network == "mobilenet_v3_large");
  if (is_named(network, "convnext_")) return convnext_dialects();
  if (is_named(network, "vit_")) return vit_dialects();
  return {own_dialect("Stoker")};
}

// The dialects of EfficientNet and the MobileNets.

namespace {

/// The layers of one inverted bottleneck, in order.
struct BlockNames {
  std::string theirs, ours;  ///< how the names of its tensors begin: "blocks.{s}.{b}.", "features.{s+1}.{b}.block."
  bool widens = true;        ///< has a convolution to more channels in front
  bool squeezes = true;      ///< has squeeze and excitation
};

/// timm's names: the last convolution is conv_pwl where the first one is conv_pw, else conv_pw itself.
void add_timm_block(const BlockNames& names, std::vector<NameRow>& rows) {
  const auto add = [&](const std::string& theirs, const std::string& ours) {
    rows.push_back({names.theirs + theirs + ".*", names.ours + ours + ".*"});
  };
  int place = 0, norm = 1;
  const auto add_convolution = [&](const char* theirs) {
    add(theirs, std::to_string(place) + ".0");
    add("bn" + std::to_string(norm++), std::to_string(place++) + ".1");
  };
  if (names.widens) add_convolution("conv_pw");
  add_convolution("conv_dw");
  if (names.squeezes) {
    add("se.conv_reduce", std::to_string(place) + ".fc1");
    add("se.conv_expand", std::to_string(place++) + ".fc2");
  }
  add_convolution(names.widens ? "conv_pwl" : "conv_pw");
}

void add_face_block(const BlockNames& names, std::vector<NameRow>& rows) {
  const auto add = [&](const std::string& theirs, int place, const char* ours) {
    rows.push_back({names.theirs + theirs + ".*", names.ours + std::to_string(place) + "." + ours + ".*"});
  };
  const int first = names.widens ? 1 : 0;  // place of the depthwise convolution
  if (names.widens) {
    add("expansion.expand_conv", 0, "0");
    add("expansion.expand_bn", 0, "1");
  }
  add("depthwise_conv.depthwise_conv", first, "0");
  add("depthwise_conv.depthwise_norm", first, "1");
  add("squeeze_excite.reduce", first + 1, "fc1");
  add("squeeze_excite.expand", first + 1, "fc2");
  add("projection.project_conv", first + 2, "0");
  add("projection.project_bn", first + 2, "1");
}

constexpr int kStageBlocks[] = {1, 2, 2, 3, 3, 4, 1};  // of EfficientNet-B0
constexpr double kDepths[] = {1.0, 1.1, 1.2, 1.4, 1.8, 2.2, 2.6, 3.1};

/// timm's names do not show which network of TensorFlow they are from.
constexpr char kTimmsRemark[] =
    "batch norms are taken to have timm's epsilon of 1e-5; networks whose name in timm begins with tf_ have 1e-3 and "
    "TensorFlow's padding, and give their results with --init-norm-eps 0.001 --same-padding alone";

}  // namespace

std::vector<Dialect> efficientnet_dialects(const std::string& network) {
  Dialect timm{"timm", "", {}, {}, 1e-5, kTimmsRemark};
  timm.rows = {
      {"conv_stem.*", "features.0.0.*"}, {"bn1.*", "features.0.1.*"},        {"conv_head.*", "features.8.0.*"},
      {"bn2.*", "features.8.1.*"},       {"classifier.*", "classifier.1.*"},
  };
  add_timm_block({"blocks.0.{b}.", "features.1.{b}.block.", /*widens=*/false}, timm.rows);
  add_timm_block({"blocks.{s}.{b}.", "features.{s+1}.{b}.block."}, timm.rows);

  Dialect face{"Hugging Face",
               "efficientnet.",
               {},
               {},
               1e-3,
               "trained with padding at the right and at the bottom where a convolution halves, which is on both sides "
               "here: --same-padding gives its results, without it they differ until it is trained further"};
  face.rows = {
      {"embeddings.convolution.*", "features.0.0.*"},
      {"embeddings.batchnorm.*", "features.0.1.*"},
      {"encoder.top_conv.*", "features.8.0.*"},
      {"encoder.top_bn.*", "features.8.1.*"},
      {"classifier.*", "classifier.1.*"},
  };
  const double depth = kDepths[network.back() - '0'];
  int block = 0;
  for (size_t stage = 0; stage < std::size(kStageBlocks); ++stage) {
    const int count = static_cast<int>(std::ceil(depth * kStageBlocks[stage]));
    for (int i = 0; i < count; ++i, ++block) {
      add_face_block({"encoder.blocks." + std::to_string(block) + ".",
                      "features." + std::to_string(stage + 1) + "." + std::to_string(i) + ".block.", stage > 0},
                     face.rows);
    }
  }
  return {own_dialect("torchvision"), timm, face};
}

std::vector<Dialect> mobilenet_dialects(bool large) {
  struct Stage {
    int first;  ///< number of its first block in torchvision
    bool squeezes;
  };
  const std::vector<Stage> stages =
      large ? std::vector<Stage>{{1, false}, {2, false}, {4, true}, {7, false}, {11, true}, {13, true}}
            : std::vector<Stage>{{1, true}, {2, false}, {4, true}, {7, true}, {9, true}};
  const std::string last = std::to_string(large ? 16 : 12), last_stage = std::to_string(stages.size());
  Dialect timm{"timm", "", {}, {}, 1e-5, kTimmsRemark};
  timm.rows = {
      {"conv_stem.*", "features.0.0.*"},
      {"bn1.*", "features.0.1.*"},
      {"blocks." + last_stage + ".0.conv.*", "features." + last + ".0.*"},
      {"blocks." + last_stage + ".0.bn1.*", "features." + last + ".1.*"},
      {"conv_head.*", "classifier.0.*"},
      {"classifier.*", "classifier.3.*"},
  };
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    add_timm_block(
        {"blocks." + std::to_string(stage) + ".{b}.", "features.{b+" + std::to_string(stages[stage].first) + "}.block.",
         stage > 0, stages[stage].squeezes},
        timm.rows);
  }
  return {own_dialect("torchvision"), timm};
}

std::vector<Dialect> efficientnet_v2_dialects(const std::string& network) {
  const std::string last = network == "efficientnet_v2_s" ? "7" : "8";
  Dialect timm{"timm", "", {}, {}, 1e-5, kTimmsRemark};
  timm.rows = {
      {"conv_stem.*", "features.0.0.*"},
      {"bn1.*", "features.0.1.*"},
      {"conv_head.*", "features." + last + ".0.*"},
      {"bn2.*", "features." + last + ".1.*"},
      {"classifier.*", "classifier.1.*"},
      {"blocks.0.{b}.conv.*", "features.1.{b}.block.0.0.*"},
      {"blocks.0.{b}.bn1.*", "features.1.{b}.block.0.1.*"},
  };
  for (const int stage : {1, 2}) {  // fused
    const std::string theirs = "blocks." + std::to_string(stage) + ".{b}.",
                      ours = "features." + std::to_string(stage + 1) + ".{b}.block.";
    timm.rows.insert(timm.rows.end(), {{theirs + "conv_exp.*", ours + "0.0.*"},
                                       {theirs + "bn1.*", ours + "0.1.*"},
                                       {theirs + "conv_pwl.*", ours + "1.0.*"},
                                       {theirs + "bn2.*", ours + "1.1.*"}});
  }
  add_timm_block({"blocks.{s}.{b}.", "features.{s+1}.{b}.block."}, timm.rows);
  return {own_dialect("torchvision"), timm};
}

std::vector<Dialect> mobilenet_v2_dialects() {
  Dialect timm{"timm", "", {}, {}, 0, ""};
  timm.rows = {
      {"conv_stem.*", "features.0.0.*"},
      {"bn1.*", "features.0.1.*"},
      {"conv_head.*", "features.18.0.*"},
      {"bn2.*", "features.18.1.*"},
      {"classifier.*", "classifier.1.*"},
      {"blocks.0.0.conv_dw.*", "features.1.conv.0.0.*"},
      {"blocks.0.0.bn1.*", "features.1.conv.0.1.*"},
      {"blocks.0.0.conv_pw.*", "features.1.conv.1.*"},
      {"blocks.0.0.bn2.*", "features.1.conv.2.*"},
  };
  const std::pair<const char*, const char*> layers[] = {{"conv_pw", "0.0"}, {"bn1", "0.1"},    {"conv_dw", "1.0"},
                                                        {"bn2", "1.1"},     {"conv_pwl", "2"}, {"bn3", "3"}};
  constexpr int kFirst[] = {2, 4, 7, 11, 14, 17};  // number of a stage's first block in torchvision
  for (size_t stage = 0; stage < std::size(kFirst); ++stage) {
    for (const auto& [theirs, ours] : layers) {
      timm.rows.push_back({"blocks." + std::to_string(stage + 1) + ".{b}." + theirs + ".*",
                           "features.{b+" + std::to_string(kFirst[stage]) + "}.conv." + ours + ".*"});
    }
  }
  return {own_dialect("torchvision"), timm};
}

}  // namespace stoker::weights
