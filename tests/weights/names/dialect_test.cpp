// SPDX-License-Identifier: Apache-2.0
#include "weights/names/dialect.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "weights/names/name_plan.h"

namespace stoker::weights {
namespace {

/// The name in a dialect: "torchvision's name", with the part where several make one; "?" and "-" for unknown and
/// idle.
std::string ours(const std::string& network, const std::string& dialect, const std::string& theirs) {
  for (const Dialect& candidate : dialects_of(network)) {
    if (candidate.name != dialect) continue;
    OurName name;
    const NameKind kind = translate(candidate, theirs, name);
    if (kind != NameKind::known) return kind == NameKind::idle ? "-" : "?";
    return name.parts == 1 ? name.name : name.name + " " + std::to_string(name.part) + "/" + std::to_string(name.parts);
  }
  return "no such dialect";
}

struct Pair {
  const char *network, *dialect, *theirs, *ours;
};

// Names as the libraries print them; each row of the tables at least once.
const Pair kPairs[] = {
    {"resnet50", "torchvision and timm", "layer2.0.downsample.1.running_var", "layer2.0.downsample.1.running_var"},
    {"resnet50", "Hugging Face", "resnet.embedder.embedder.convolution.weight", "conv1.weight"},
    {"resnet50", "Hugging Face", "embedder.embedder.normalization.running_mean", "bn1.running_mean"},
    {"resnet50", "Hugging Face", "resnet.encoder.stages.1.layers.0.shortcut.convolution.weight",
     "layer2.0.downsample.0.weight"},
    {"resnet50", "Hugging Face", "resnet.encoder.stages.3.layers.2.shortcut.normalization.bias",
     "layer4.2.downsample.1.bias"},
    {"resnet50", "Hugging Face", "resnet.encoder.stages.0.layers.2.layer.1.convolution.weight",
     "layer1.2.conv2.weight"},
    {"resnet50", "Hugging Face", "resnet.encoder.stages.0.layers.10.layer.2.normalization.weight",
     "layer1.10.bn3.weight"},
    {"resnet50", "Hugging Face", "classifier.1.bias", "fc.bias"},
    {"resnet50", "Hugging Face", "resnet.encoder.stages.x.layers.0.layer.0.convolution.weight", "?"},
    {"efficientnet_b0", "timm", "conv_stem.weight", "features.0.0.weight"},
    {"efficientnet_b0", "timm", "bn1.bias", "features.0.1.bias"},
    {"efficientnet_b0", "timm", "blocks.0.0.conv_dw.weight", "features.1.0.block.0.0.weight"},
    {"efficientnet_b0", "timm", "blocks.0.0.se.conv_reduce.bias", "features.1.0.block.1.fc1.bias"},
    {"efficientnet_b0", "timm", "blocks.0.0.conv_pw.weight", "features.1.0.block.2.0.weight"},
    {"efficientnet_b0", "timm", "blocks.0.0.bn2.weight", "features.1.0.block.2.1.weight"},
    {"efficientnet_b0", "timm", "blocks.3.2.conv_pw.weight", "features.4.2.block.0.0.weight"},
    {"efficientnet_b0", "timm", "blocks.3.2.conv_dw.weight", "features.4.2.block.1.0.weight"},
    {"efficientnet_b0", "timm", "blocks.3.2.se.conv_expand.weight", "features.4.2.block.2.fc2.weight"},
    {"efficientnet_b0", "timm", "blocks.3.2.conv_pwl.weight", "features.4.2.block.3.0.weight"},
    {"efficientnet_b0", "timm", "blocks.3.2.bn3.num_batches_tracked", "features.4.2.block.3.1.num_batches_tracked"},
    {"efficientnet_b0", "timm", "conv_head.weight", "features.8.0.weight"},
    {"efficientnet_b0", "timm", "bn2.weight", "features.8.1.weight"},
    {"efficientnet_b0", "timm", "classifier.weight", "classifier.1.weight"},
    {"efficientnet_b0", "Hugging Face", "efficientnet.embeddings.convolution.weight", "features.0.0.weight"},
    {"efficientnet_b0", "Hugging Face", "efficientnet.encoder.blocks.0.depthwise_conv.depthwise_conv.weight",
     "features.1.0.block.0.0.weight"},
    {"efficientnet_b0", "Hugging Face", "efficientnet.encoder.blocks.0.projection.project_bn.bias",
     "features.1.0.block.2.1.bias"},
    {"efficientnet_b0", "Hugging Face", "efficientnet.encoder.blocks.2.expansion.expand_conv.weight",
     "features.2.1.block.0.0.weight"},
    {"efficientnet_b0", "Hugging Face", "efficientnet.encoder.blocks.15.squeeze_excite.reduce.weight",
     "features.7.0.block.2.fc1.weight"},
    {"efficientnet_b1", "Hugging Face", "efficientnet.encoder.blocks.1.depthwise_conv.depthwise_norm.weight",
     "features.1.1.block.0.1.weight"},
    {"efficientnet_b1", "Hugging Face", "efficientnet.encoder.top_bn.weight", "features.8.1.weight"},
    {"mobilenet_v3_large", "timm", "blocks.0.0.conv_pw.weight", "features.1.block.1.0.weight"},
    {"mobilenet_v3_large", "timm", "blocks.1.1.conv_pwl.weight", "features.3.block.2.0.weight"},
    {"mobilenet_v3_large", "timm", "blocks.2.0.se.conv_reduce.weight", "features.4.block.2.fc1.weight"},
    {"mobilenet_v3_large", "timm", "blocks.3.3.bn3.weight", "features.10.block.2.1.weight"},
    {"mobilenet_v3_large", "timm", "blocks.5.2.conv_pwl.weight", "features.15.block.3.0.weight"},
    {"mobilenet_v3_large", "timm", "blocks.6.0.conv.weight", "features.16.0.weight"},
    {"mobilenet_v3_large", "timm", "conv_head.bias", "classifier.0.bias"},
    {"mobilenet_v3_large", "timm", "classifier.bias", "classifier.3.bias"},
    {"mobilenet_v3_small", "timm", "blocks.0.0.se.conv_expand.bias", "features.1.block.1.fc2.bias"},
    {"mobilenet_v3_small", "timm", "blocks.4.2.conv_dw.weight", "features.11.block.1.0.weight"},
    {"mobilenet_v3_small", "timm", "blocks.5.0.bn1.weight", "features.12.1.weight"},
    {"convnext_tiny", "timm", "stem.1.weight", "features.0.1.weight"},
    {"convnext_tiny", "timm", "stages.0.blocks.1.conv_dw.weight", "features.1.1.block.0.weight"},
    {"convnext_tiny", "timm", "stages.2.downsample.1.bias", "features.4.1.bias"},
    {"convnext_tiny", "timm", "stages.3.blocks.2.gamma", "features.7.2.layer_scale"},
    {"convnext_tiny", "timm", "stages.3.blocks.2.mlp.fc2.weight", "features.7.2.block.5.weight"},
    {"convnext_tiny", "timm", "head.norm.weight", "classifier.0.weight"},
    {"convnext_tiny", "timm", "head.fc.weight", "classifier.2.weight"},
    {"convnext_tiny", "Hugging Face", "convnext.embeddings.patch_embeddings.weight", "features.0.0.weight"},
    {"convnext_tiny", "Hugging Face", "convnext.encoder.stages.1.downsampling_layer.0.weight", "features.2.0.weight"},
    {"convnext_tiny", "Hugging Face", "convnext.encoder.stages.1.layers.0.layer_scale_parameter",
     "features.3.0.layer_scale"},
    {"convnext_tiny", "Hugging Face", "convnext.encoder.stages.1.layers.0.pwconv1.bias", "features.3.0.block.3.bias"},
    {"convnext_tiny", "Hugging Face", "convnext.layernorm.weight", "classifier.0.weight"},
    {"convnext_tiny", "Hugging Face", "classifier.weight", "classifier.2.weight"},
    {"convnext_tiny", "Facebook's ConvNeXt", "downsample_layers.0.0.weight", "features.0.0.weight"},
    {"convnext_tiny", "Facebook's ConvNeXt", "downsample_layers.3.1.weight", "features.6.1.weight"},
    {"convnext_tiny", "Facebook's ConvNeXt", "stages.2.8.pwconv2.weight", "features.5.8.block.5.weight"},
    {"convnext_tiny", "Facebook's ConvNeXt", "head.bias", "classifier.2.bias"},
    {"vit_b_16", "torchvision", "encoder.layers.encoder_layer_3.mlp.linear_2.bias",
     "encoder.layers.encoder_layer_3.mlp.3.bias"},
    {"vit_b_16", "torchvision", "encoder.ln.weight", "encoder.ln.weight"},
    {"vit_b_16", "timm", "pos_embed", "encoder.pos_embedding"},
    {"vit_b_16", "timm", "blocks.11.attn.qkv.bias", "encoder.layers.encoder_layer_11.self_attention.in_proj_bias"},
    {"vit_b_16", "timm", "blocks.0.norm2.weight", "encoder.layers.encoder_layer_0.ln_2.weight"},
    {"vit_b_16", "timm", "norm.bias", "encoder.ln.bias"},
    {"vit_b_16", "timm", "fc_norm.bias", "?"},
    {"vit_b_16", "Hugging Face", "vit.encoder.layer.4.attention.attention.query.weight",
     "encoder.layers.encoder_layer_4.self_attention.in_proj_weight 0/3"},
    {"vit_b_16", "Hugging Face", "vit.encoder.layer.4.attention.attention.value.bias",
     "encoder.layers.encoder_layer_4.self_attention.in_proj_bias 2/3"},
    {"vit_b_16", "Hugging Face", "vit.encoder.layer.4.attention.output.dense.weight",
     "encoder.layers.encoder_layer_4.self_attention.out_proj.weight"},
    {"vit_b_16", "Hugging Face", "vit.encoder.layer.4.intermediate.dense.weight",
     "encoder.layers.encoder_layer_4.mlp.0.weight"},
    {"vit_b_16", "Hugging Face", "vit.encoder.layer.4.output.dense.weight",
     "encoder.layers.encoder_layer_4.mlp.3.weight"},
    {"vit_b_16", "Hugging Face", "vit.layernorm.bias", "encoder.ln.bias"},
    {"vit_b_16", "Hugging Face", "vit.pooler.dense.weight", "-"},
    {"vit_l_16", "timm", "blocks.23.mlp.fc2.bias", "encoder.layers.encoder_layer_23.mlp.3.bias"},
    {"resnext50_32x4d", "torchvision and timm", "layer1.0.conv2.weight", "layer1.0.conv2.weight"},
    {"wide_resnet50_2", "torchvision and timm", "layer1.0.conv2.weight", "layer1.0.conv2.weight"},
    {"densenet121", "torchvision and timm", "features.denseblock2.denselayer12.norm.1.running_var",
     "features.denseblock2.denselayer12.norm1.running_var"},
    {"densenet121", "torchvision and timm", "features.denseblock2.denselayer1.conv.2.weight",
     "features.denseblock2.denselayer1.conv2.weight"},
    {"densenet121", "torchvision and timm", "features.norm5.bias", "features.norm5.bias"},
    {"regnet_y_400mf", "timm", "stem.bn.weight", "stem.1.weight"},
    {"regnet_y_400mf", "timm", "s2.b3.conv2.conv.weight", "trunk_output.block2.block2-2.f.b.0.weight"},
    {"regnet_y_400mf", "timm", "s1.b1.downsample.bn.running_mean", "trunk_output.block1.block1-0.proj.1.running_mean"},
    {"regnet_y_400mf", "timm", "s4.b6.se.fc2.bias", "trunk_output.block4.block4-5.f.se.fc2.bias"},
    {"regnet_y_400mf", "timm", "head.fc.bias", "fc.bias"},
    {"swin_t", "timm", "patch_embed.norm.bias", "features.0.2.bias"},
    {"swin_t", "timm", "layers.1.downsample.norm.weight", "features.2.norm.weight"},
    {"swin_t", "timm", "layers.2.blocks.5.mlp.fc2.weight", "features.5.5.mlp.3.weight"},
    {"swin_t", "timm", "layers.2.blocks.5.attn.relative_position_bias_table",
     "features.5.5.attn.relative_position_bias_table"},
    {"swin_t", "timm", "layers.2.blocks.5.attn_mask", "-"},
    {"swin_t", "timm", "head.fc.weight", "head.weight"},
    {"swin_t", "Microsoft's Swin", "patch_embed.proj.weight", "features.0.0.weight"},
    {"swin_t", "Microsoft's Swin", "layers.0.downsample.reduction.weight", "features.2.reduction.weight"},
    {"swin_t", "Microsoft's Swin", "layers.0.blocks.0.attn.relative_position_index", "-"},
    {"swin_t", "Microsoft's Swin", "norm.weight", "norm.weight"},
    {"swin_t", "Microsoft's Swin", "head.weight", "head.weight"},
    {"efficientnet_v2_s", "timm", "blocks.0.1.conv.weight", "features.1.1.block.0.0.weight"},
    {"efficientnet_v2_s", "timm", "blocks.0.1.bn1.weight", "features.1.1.block.0.1.weight"},
    {"efficientnet_v2_s", "timm", "blocks.2.0.conv_exp.weight", "features.3.0.block.0.0.weight"},
    {"efficientnet_v2_s", "timm", "blocks.2.0.bn2.bias", "features.3.0.block.1.1.bias"},
    {"efficientnet_v2_s", "timm", "blocks.3.0.bn2.bias", "features.4.0.block.1.1.bias"},
    {"efficientnet_v2_s", "timm", "blocks.5.14.conv_pwl.weight", "features.6.14.block.3.0.weight"},
    {"efficientnet_v2_s", "timm", "conv_head.weight", "features.7.0.weight"},
    {"efficientnet_v2_l", "timm", "conv_head.weight", "features.8.0.weight"},
    {"mobilenet_v2", "timm", "blocks.0.0.conv_pw.weight", "features.1.conv.1.weight"},
    {"mobilenet_v2", "timm", "blocks.3.2.conv_dw.weight", "features.9.conv.1.0.weight"},
    {"mobilenet_v2", "timm", "blocks.6.0.bn3.running_var", "features.17.conv.3.running_var"},
    {"mobilenet_v2", "timm", "bn2.bias", "features.18.1.bias"},
    {"small_cnn", "Stoker", "anything.0", "anything.0"},
};

TEST(DialectTest, TensorsOfOtherLibrariesHaveTheNamesOfTorchvision) {
  for (const Pair& pair : kPairs) EXPECT_EQ(ours(pair.network, pair.dialect, pair.theirs), pair.ours) << pair.theirs;
}

const std::vector<std::string> kWanted = {"conv1.weight", "bn1.weight", "fc.weight"};

NamePlan planned(const std::vector<GroupedName>& given, const std::string& network = "resnet18") {
  return plan_names(network, kWanted, given, "w.pth");
}

std::vector<GroupedName> in_group(const std::string& group, const std::string& prefix = "") {
  return {{group, prefix + "conv1.weight"}, {group, prefix + "bn1.weight"}, {group, prefix + "fc.weight"}};
}

TEST(NamePlanTest, WeightsAreFoundUnderTheKeysOfTrainersTheAverageFirst) {
  for (const char* group : {"", "state_dict", "model", "model_ema", "net", "anything"}) {
    const NamePlan plan = planned(in_group(group));
    EXPECT_EQ(plan.group, group);
    EXPECT_EQ(plan.matched, 3u);
  }
  std::vector<GroupedName> both = in_group("state_dict");
  for (const GroupedName& name : in_group("state_dict_ema")) both.push_back(name);
  both.push_back({"optimizer.state.0", "exp_avg"});
  EXPECT_EQ(planned(both).group, "state_dict_ema");
  EXPECT_EQ(planned(both).other_groups, (std::vector<std::string>{"optimizer.state.0", "state_dict"}));
}

TEST(NamePlanTest, SeveralUnknownDictionariesAreRefusedByName) {
  std::vector<GroupedName> given = in_group("teacher");
  for (const GroupedName& name : in_group("student")) given.push_back(name);
  try {
    planned(given);
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_NE(std::string(error.what()).find("but it has student and teacher"), std::string::npos) << error.what();
  }
}

TEST(NamePlanTest, PrefixesOfWrappersAreTakenOffHoweverManyThereAre) {
  for (const char* prefix : {"module.", "model.", "_orig_mod.module.", "_forward_module.", "_forward_module.module.",
                             "model.backbone.", "timm_model."}) {
    const NamePlan plan = planned(in_group("", prefix));
    EXPECT_EQ(plan.prefix, prefix);
    EXPECT_EQ(plan.matched, 3u) << prefix;
  }
  std::vector<GroupedName> given = in_group("state_dict", "model.");
  given.push_back({"state_dict", "loss.weight"});
  EXPECT_EQ(planned(given).left_out, std::vector<std::string>{"loss.weight"});
  EXPECT_EQ(planned(given).matched, 3u);
}

std::string objects_of(const NamePlan& plan) {
  std::string text;
  for (const NamePlan::Object& object : plan.objects) text += object.ours + "=" + std::to_string(object.place) + " ";
  return text;
}

TEST(NamePlanTest, ObjectsInPlaceOfTensorsHaveOurNamesAndOthersAreNotNeeded) {
  const std::vector<GroupedName> tensors = {{"model", "module.conv1.weight"}, {"model", "module.bn1.weight"}};
  const NamePlan plan = plan_names("resnet18", kWanted, tensors, "w",
                                   {{"model", "optimizer", false},
                                    {"model", "module.fc.weight", true},
                                    {"model", "metric", true},
                                    {"optimizer", "module.fc.weight", true}});
  EXPECT_EQ(objects_of(plan), "fc.weight=1 ");
  EXPECT_EQ(plan.matched, 2u);
  EXPECT_EQ(plan.sources.size(), 2u);
  EXPECT_EQ(plan.left_out, std::vector<std::string>{});
}

TEST(NamePlanTest, ADictionaryOfObjectsOnlyIsFoundBesideTensorsOfAnOptimizer) {
  std::vector<ObjectName> objects;
  for (const std::string& name : kWanted) objects.push_back({"state_dict", "module." + name, true});
  for (const char* const second : {"optimizer.state.0", "optimizer.state.1"}) {
    const NamePlan plan =
        plan_names("resnet18", kWanted, {{"optimizer.state.0", "exp_avg"}, {second, "exp_avg_sq"}}, "w", objects);
    EXPECT_EQ(plan.group, "state_dict");
    EXPECT_EQ(objects_of(plan), "bn1.weight=1 conv1.weight=0 fc.weight=2 ");
  }
}

TEST(NamePlanTest, APartThatIsAnObjectMakesTheWholeTensorOne) {
  const std::string layer = "vit.encoder.layer.0.attention.attention.";
  const std::string name = "encoder.layers.encoder_layer_0.self_attention.in_proj_weight";
  const NamePlan plan = plan_names("vit_b_16", {name}, {{"", layer + "value.weight"}, {"", layer + "query.weight"}},
                                   "w", {{"", layer + "key.weight", true}});
  EXPECT_EQ(objects_of(plan), name + "=0 ");
  EXPECT_TRUE(plan.sources.empty());
}

TEST(NamePlanTest, PartsOfOneTensorMustAllBeThere) {
  const std::string layer = "vit.encoder.layer.0.attention.attention.";
  std::vector<GroupedName> given = {
      {"", layer + "value.weight"}, {"", layer + "query.weight"}, {"", layer + "key.weight"}};
  const std::string name = "encoder.layers.encoder_layer_0.self_attention.in_proj_weight";
  const NamePlan plan = plan_names("vit_b_16", {name}, given, "w");
  ASSERT_EQ(plan.sources.size(), 1u);
  EXPECT_EQ(plan.sources[0].theirs, (std::vector<size_t>{1, 2, 0})) << "query, key, value";
  given.erase(given.begin());
  EXPECT_THROW(plan_names("vit_b_16", {name}, given, "w"), core::Error);
}

}  // namespace
}  // namespace stoker::weights
