// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <set>

#include "core/error.h"
#include "model/loss.h"
#include "tests/model/deterministic_fill.h"

namespace stoker::model {
namespace {

std::shared_ptr<ImageModel> small_model(int64_t width = 32, int64_t in_chans = 1) {
  ModelSpec spec;
  spec.name = "small_cnn";
  spec.in_chans = in_chans;
  spec.num_classes = 10;
  spec.width = width;
  return make_model(spec);
}

/// The first network of each factory, and those of other code; more would take seconds each.
std::vector<std::string> small_networks() {
  std::vector<std::string> names = {"tiny_cnn", "resnet50", "efficientnet_v2_s", "swin_v2_t"};
  std::set<std::string> factories;
#define STOKER_NETWORK(name, factory, ...) \
  if (factories.insert(#factory).second) names.emplace_back(#name);
#include "model/networks.inc"
#undef STOKER_NETWORK
  return names;
}

std::shared_ptr<ImageModel> eleven_class_model(const std::string& name) {
  const DropRates usual = usual_drop_rates(name);
  ModelSpec spec;
  spec.name = name;
  spec.num_classes = 11;
  spec.img_size = {32, 32};
  spec.drop_rate = usual.drop_rate;
  spec.drop_path_rate = usual.drop_path_rate;
  return make_model(spec);
}

TEST(ModelTest, RefusesAnUnknownNameAndNamesTheKnownOnes) {
  ModelSpec spec;
  spec.name = "resnet81";
  try {
    make_model(spec);
    FAIL() << "an unknown model was accepted";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::config);
    const std::string message = error.what();
    EXPECT_NE(message.find("unknown model 'resnet81'"), std::string::npos) << message;
    for (const std::string& name : model_names()) EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(error.hint().find("resnet"), std::string::npos) << error.hint();
  }
}

TEST(ModelTest, RefusesCountsBelowOne) {
  ModelSpec spec;
  spec.name = "small_cnn";
  spec.num_classes = 0;
  try {
    make_model(spec);
    FAIL() << "no classes were accepted";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::config);
    EXPECT_STREQ(error.what(), "the number of classes is 0, but must be at least 1");
  }
}

void expect_logits_of_the_right_shape(ImageModel& model, const std::string& name) {
  torch::NoGradGuard no_grad;
  EXPECT_EQ(model.forward(torch::zeros({2, 3, 32, 32})).sizes(), (std::vector<int64_t>{2, 11})) << name;
  const std::string head = model.head_prefix();
  EXPECT_EQ(model.named_parameters()[head + "weight"].size(0), 11) << name;
  EXPECT_EQ(model.named_parameters()[head + "bias"].size(0), 11) << name;
}

void expect_every_parameter_in_a_layer(const ImageModel& model, const std::string& name) {
  std::vector<int64_t> parameters(static_cast<size_t>(model.layer_count()), 0);
  const bool has_streams = name == "two_stream_convlstm";
  int64_t last = 0;
  for (const auto& item : model.named_parameters()) {
    const int64_t layer = model.layer_of(item.key());
    EXPECT_TRUE(layer >= last || has_streams) << name << ' ' << item.key();  // registered from input to output
    last = layer;
    ++parameters.at(static_cast<size_t>(layer));
  }
  for (const int64_t count : parameters) EXPECT_GT(count, 0) << name;
  EXPECT_EQ(model.layer_of(model.head_prefix() + "weight"), model.layer_count() - 1) << name;
}

/// Drawing a network's first weights takes longer than all else here, so each is made once.
TEST(ModelTest, EveryFamilyGivesLogitsOfTheRightShapeAndHasEachParameterInOneLayerAndTheClassifierInTheLast) {
  for (const std::string& name : small_networks()) {
    const auto model = eleven_class_model(name);
    expect_logits_of_the_right_shape(*model, name);
    expect_every_parameter_in_a_layer(*model, name);
  }
}

TEST(ModelTest, LayersAreCountedAsTimmCountsThem) {
  // From timm's group_matcher() of each network, with its names turned into torchvision's.
  const std::pair<const char*, int64_t> counts[] = {
      {"resnet18", 10},           {"resnet50", 18},        {"mobilenet_v3_small", 14},
      {"mobilenet_v3_large", 18}, {"resnext50_32x4d", 18}, {"mobilenet_v2", 19},
      {"densenet121", 60},        {"regnet_y_400mf", 18},  {"efficientnet_v2_s", 42}};
  for (const auto& [name, count] : counts) EXPECT_EQ(eleven_class_model(name)->layer_count(), count) << name;
}

TEST(ModelTest, LayersAndTheLastNormAndConvolutionAreThoseThatTimmHasThemIn) {
  const auto convnext = eleven_class_model("convnext_tiny");
  EXPECT_EQ(convnext->layer_count(), 20);
  EXPECT_EQ(convnext->layer_of("classifier.0.weight"), 19) << "timm's head.norm is part of the head";
  EXPECT_EQ(convnext->layer_of("classifier.2.weight"), 19);
  EXPECT_EQ(convnext->layer_of("features.7.2.layer_scale"), 18);
  EXPECT_EQ(convnext->layer_of("features.2.1.weight"), convnext->layer_of("features.3.0.layer_scale"));
  const auto vit = eleven_class_model("vit_s_16");
  EXPECT_EQ(vit->layer_count(), 14);
  EXPECT_EQ(vit->layer_of("encoder.ln.weight"), 12) << "timm's norm is part of the last block";
  EXPECT_EQ(vit->layer_of("encoder.layers.encoder_layer_11.ln_1.weight"), 12);
  const auto swin = eleven_class_model("swin_t");
  EXPECT_EQ(swin->layer_count(), 14);
  EXPECT_EQ(swin->layer_of("norm.weight"), 12) << "timm's norm is part of the last block";
  EXPECT_EQ(swin->layer_of("features.2.reduction.weight"), swin->layer_of("features.3.0.norm1.weight"));
  const auto densenet = eleven_class_model("densenet121");
  EXPECT_EQ(densenet->layer_of("features.norm5.weight"), 59) << "timm's norm5 is part of the head";
  EXPECT_EQ(densenet->layer_of("features.transition1.conv.weight"), 6);
  const auto efficientnet = eleven_class_model("efficientnet_b0");
  EXPECT_EQ(efficientnet->layer_count(), 18);
  EXPECT_EQ(efficientnet->layer_of("features.8.0.weight"), 16) << "timm's conv_head is part of the last block";
  EXPECT_EQ(efficientnet->layer_of("features.7.0.block.0.0.weight"), 16);
}

TEST(ModelTest, LearnsFromEveryParameterWithItsUsualDropRates) {
  torch::manual_seed(3);
  for (const char* name : {"efficientnet_b0", "mobilenet_v3_small", "convnext_tiny", "vit_s_16", "mobilenet_v2",
                           "regnet_y_400mf", "densenet121", "swin_t", "swin_v2_t"}) {
    const auto model = eleven_class_model(name);
    torch::NoGradGuard no_grad;
    for (const auto& item : model->named_parameters()) {  // a ViT's classifier starts at 0, and passes nothing on
      if (item.key().rfind(model->head_prefix(), 0) == 0) torch::Tensor(item.value()).normal_();
    }
    torch::AutoGradMode with_gradients(true);
    const torch::Tensor images = uniform_numbers(8 * 3 * 32 * 32, 1).reshape({8, 3, 32, 32});
    cross_entropy_sum(model->forward(images), torch::arange(8), 0).backward();
    for (const auto& item : model->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << name << ' ' << item.key();
      EXPECT_TRUE(torch::isfinite(item.value().grad()).all().item<bool>()) << name << ' ' << item.key();
    }
  }
}

TEST(ModelTest, RefusesStochasticDepthWhereThereIsNone) {
  ModelSpec spec;
  spec.name = "resnet18";
  spec.drop_path_rate = 0.1;
  EXPECT_THROW(make_model(spec), core::Error);
}

TEST(ModelTest, AVitIsMadeForOneImageSize) {
  ModelSpec spec;
  spec.name = "vit_s_16";
  spec.img_size = {40, 40};
  try {
    make_model(spec);
    FAIL() << "40 pixels were accepted";
  } catch (const core::Error& error) {
    EXPECT_STREQ(error.what(), "vit_s_16 cuts images into patches of 16 pixels, but img-size is 40");
    EXPECT_EQ(error.hint(), "use --img-size 32");
  }
  spec.img_size = {32, 48};
  EXPECT_EQ(make_model(spec)->forward(torch::zeros({1, 3, 32, 48})).size(1), spec.num_classes);
}

TEST(ModelTest, StateListsParametersThenBuffersInRegistrationOrder) {
  const auto model = small_model();
  const std::vector<NamedTensor> state = state_of(*model);
  const size_t parameters = model->parameters().size();
  ASSERT_EQ(state.size(), parameters + model->buffers().size());
  EXPECT_EQ(state[0].name, "stem.conv.weight");
  EXPECT_EQ(state[1].name, "stem.norm.weight");
  EXPECT_EQ(state[parameters - 1].name, "fc.bias");
  EXPECT_EQ(state[parameters].name, "stem.norm.running_mean");
  EXPECT_EQ(state[parameters + 2].name, "stem.norm.num_batches_tracked");
  state[0].tensor.detach().zero_();  // the model's own memory, not a copy
  EXPECT_EQ(model->parameters()[0].abs().sum().item<float>(), 0);
}

TEST(ModelTest, SameSeedGivesTheSameWeights) {
  torch::manual_seed(3);
  const auto first = small_model();
  torch::manual_seed(3);
  const auto second = small_model();
  const auto a = state_of(*first);
  const auto b = state_of(*second);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i].tensor, b[i].tensor)) << a[i].name;
}

TEST(ModelTest, ChannelsLastChangesTheLayoutAndNotTheResult) {
  torch::manual_seed(3);
  const auto model = small_model(32, 3);
  const torch::Tensor images = uniform_numbers(4 * 3 * 28 * 28, 1).reshape({4, 3, 28, 28});
  const torch::Tensor before = model->forward(images);
  to_channels_last(*model);
  for (const auto& item : model->named_parameters()) {
    if (item.value().dim() != 4) continue;
    EXPECT_TRUE(item.value().is_contiguous(torch::MemoryFormat::ChannelsLast)) << item.key();
    EXPECT_TRUE(item.value().is_leaf() && item.value().requires_grad()) << item.key();
  }
  const torch::Tensor after = model->forward(images.contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(torch::allclose(before, after, 1e-4, 1e-4));
  cross_entropy_sum(after, torch::tensor({0, 1, 2, 3}, torch::kInt64), 0).backward();
  EXPECT_EQ(model->parameters()[0].grad().strides(), model->parameters()[0].strides());
}

TEST(ModelTest, ImagesOfOneChannelGiveChannelsLastFeaturesToo) {
  for (const char* name : {"small_cnn", "tiny_cnn"}) {
    ModelSpec spec;
    spec.name = name;
    spec.in_chans = 1;
    spec.num_classes = 10;
    const auto model = make_model(spec);
    to_channels_last(*model);
    const torch::Tensor features = model->features(torch::rand({4, 1, 28, 28}));
    EXPECT_TRUE(features.is_contiguous(torch::MemoryFormat::ChannelsLast)) << name;
  }
}

TEST(ModelTest, SmallCnnLearnsFromEveryParameter) {
  torch::manual_seed(3);
  for (const int64_t size : {28, 32, 64}) {
    const auto model = small_model(32, 3);
    const torch::Tensor images = uniform_numbers(8 * 3 * size * size, 1).reshape({8, 3, size, size});
    const torch::Tensor labels = torch::tensor({0, 1, 2, 3, 4, 5, 6, 7}, torch::kInt64);
    cross_entropy_sum(model->forward(images), labels, 0).backward();
    for (const auto& item : model->named_parameters()) {
      EXPECT_GT(item.value().grad().abs().sum().item<float>(), 0) << item.key() << " at " << size;
    }
  }
}

TEST(ModelTest, WidthScalesSmallCnn) {
  const auto narrow = small_model(32);
  const auto wide = small_model(64);
  EXPECT_EQ(wide->named_parameters()["stem.norm.weight"].numel(),
            2 * narrow->named_parameters()["stem.norm.weight"].numel());
  EXPECT_GT(parameter_count(*wide), 3 * parameter_count(*narrow));
}

}  // namespace
}  // namespace stoker::model
