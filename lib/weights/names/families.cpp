// SPDX-License-Identifier: Apache-2.0
// Which dialects a network's weights are found in; the rows of ResNets, ConvNeXts and ViTs. Sources: the state dicts of
// torchvision 0.14 and timm 1.0, modeling_*.py of Hugging Face's transformers, Facebook's ConvNeXt.
#include "weights/names/families.h"

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

std::vector<Dialect> dialects_of(const std::string& network) {
  if (is_named(network, "resnet") && network != "resnet9") return resnet_dialects();
  if (is_named(network, "efficientnet_")) return efficientnet_dialects(network);
  if (is_named(network, "mobilenet_v3_")) return mobilenet_dialects(network == "mobilenet_v3_large");
  if (is_named(network, "convnext_")) return convnext_dialects();
  if (is_named(network, "vit_")) return vit_dialects();
  return {own_dialect("Stoker")};
}

}  // namespace stoker::weights
