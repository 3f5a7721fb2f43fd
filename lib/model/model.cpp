// SPDX-License-Identifier: Apache-2.0
// The registry of networks and what every network shares. Knows no architecture in detail.
#include "model/model.h"

#include <c10/core/MemoryFormat.h>

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "model/architectures.h"
#include "model/script/network_library.h"
#include "model/script/script_network.h"

namespace stoker::model {
namespace {

using ModelFactory = std::shared_ptr<ImageModel> (*)(const ModelSpec&);

struct RegistryEntry {
  const char* name;
  ModelFactory factory;
  DropRates usual = {};
  bool takes_drop_path = false;
  bool takes_clips = false;
};

// All take [B, in_chans, H, W] and give [B, num_classes]. Parameters are for 1000 classes and 3 channels.
constexpr RegistryEntry kRegistry[] = {
    {"small_cnn", make_small_cnn},  // see small_cnn.cpp
    {"tiny_cnn", make_tiny_cnn},    // likewise
    {"peer_cnn", make_peer_cnn},    // 32-32-pool-64-64-pool-128 channels
    {"resnet9", make_resnet9},      // see resnet9.cpp
    {"resnet18", make_resnet},      // 64-128-256-512 channels at 1/4 ... 1/32; 11,689,512 parameters
    {"resnet34", make_resnet},      // as resnet18, deeper; 21,797,672
    {"resnet50", make_resnet},      // 256-512-1024-2048 channels at 1/4 ... 1/32; 25,557,032
    {"resnet101", make_resnet},     // 44,549,160
    {"resnet152", make_resnet},     // 60,192,808
    {"efficientnet_b0", make_efficientnet, {0.2, 0.2}, true},  // made for 224 pixels; 5,288,548
    {"efficientnet_b1", make_efficientnet, {0.2, 0.2}, true},  // 240; 7,794,184
    {"efficientnet_b2", make_efficientnet, {0.3, 0.2}, true},  // 260; 9,109,994
    {"efficientnet_b3", make_efficientnet, {0.3, 0.2}, true},  // 300; 12,233,232
    {"efficientnet_b4", make_efficientnet, {0.4, 0.2}, true},  // 380; 19,341,616
    {"efficientnet_b5", make_efficientnet, {0.4, 0.2}, true},  // 456; 30,389,784
    {"efficientnet_b6", make_efficientnet, {0.5, 0.2}, true},  // 528; 43,040,704
    {"efficientnet_b7", make_efficientnet, {0.5, 0.2}, true},  // 600; 66,347,960
    {"mobilenet_v3_small", make_mobilenet_v3, {0.2, 0}},       // 2,542,856
    {"mobilenet_v3_large", make_mobilenet_v3, {0.2, 0}},       // 5,483,032
    {"convnext_tiny", make_convnext, {0, 0.1}, true},          // 28,589,128
    {"convnext_small", make_convnext, {0, 0.4}, true},         // 50,223,688
    {"convnext_base", make_convnext, {0, 0.5}, true},          // 88,591,464
    {"vit_s_16", make_vision_transformer, {}, true},           // 384 wide, 6 heads; 22,050,664 at 224 pixels
    {"vit_b_16", make_vision_transformer, {}, true},           // 768 wide, 12 heads; 86,567,656 at 224 pixels
    {"spectrogram_cnn", make_spectrogram_cnn},                 // see spectrogram_cnn.cpp
    {"two_stream_convlstm", make_two_stream, {}, true, true},  // [B, T, in_chans, H, W]; see two_stream.cpp
};

const RegistryEntry* find_entry(const std::string& name) {
  for (const RegistryEntry& entry : kRegistry) {
    if (name == entry.name) return &entry;
  }
  return nullptr;
}

[[noreturn]] void refuse_unknown_model(const std::string& name) {
  const std::vector<std::string> known = model_names();
  const std::string nearest = core::nearest_name(name, known);
  throw core::Error(
      core::ErrorKind::config,
      core::format("unknown model '{}'; known models: {}", name, core::list_text(known, known.size())),
      nearest.empty() ? "choose one of the known models with --model" : core::format("did you mean '{}'?", nearest));
}

/// The network that is asked for, which can be what is asked of it.
const RegistryEntry& known_entry(const ModelSpec& spec) {
  const RegistryEntry* entry = find_entry(spec.name);
  if (entry == nullptr) refuse_unknown_model(spec.name);
  if (spec.drop_path_rate == 0 || entry->takes_drop_path) return *entry;
  throw core::Error(
      core::ErrorKind::config,
      core::format("{} has no stochastic depth, but drop-path-rate is {:g}", spec.name, spec.drop_path_rate),
      "leave --drop-path-rate out, or choose an EfficientNet, a ConvNeXt or a ViT");
}

void check_model_spec(const ModelSpec& spec) {
  const auto require_positive = [](const char* what, int64_t value) {
    if (value < 1) {
      throw core::Error(core::ErrorKind::config, core::format("{} is {}, but must be at least 1", what, value));
    }
  };
  require_positive("the number of input channels", spec.in_chans);
  require_positive("the number of classes", spec.num_classes);
  require_positive("the width", spec.width);
  require_positive("the image size", spec.img_size);
  require_positive("the number of ConvLSTM channels", spec.lstm_channels);
}

}  // namespace

torch::Tensor ImageModel::features(torch::Tensor) {
  throw core::Error(core::ErrorKind::config, "this network gives no feature map, which a larger one needs of it",
                    "choose a convolutional network, such as efficientnet_b0");
}

void ImageModel::train(bool on) {
  torch::nn::Module::train(on);
  for (const auto& part : still_) part->eval();
}

int64_t ImageModel::layer_of(const std::string& parameter) const {
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    for (const std::string& prefix : layers_[layer]) {
      if (parameter.compare(0, prefix.size(), prefix) == 0) return static_cast<int64_t>(layer);
    }
  }
  throw core::Error(core::ErrorKind::bug, core::format("parameter '{}' belongs to no layer", parameter));
}

bool ImageModel::decays(const std::string& parameter) const {
  const std::vector<std::string> spared = no_weight_decay();
  const std::string last_part = parameter.substr(parameter.rfind('.') + 1);
  return std::find(spared.begin(), spared.end(), last_part) == spared.end();
}

std::shared_ptr<ImageModel> make_model(const ModelSpec& spec) {
  check_model_spec(spec);
  if (is_network_file(spec.name)) return make_script_network(spec);
  return known_entry(spec).factory(spec);
}

std::shared_ptr<ImageModel> make_backbone(ModelSpec spec) {
  spec.num_classes = 0;
  std::shared_ptr<ImageModel> backbone = known_entry(spec).factory(spec);
  if (backbone->feature_channels() == 0) backbone->features({});  // says what is wrong
  return backbone;
}

bool takes_clips(const std::string& model_name) {
  const RegistryEntry* entry = find_entry(model_name);
  return entry != nullptr && entry->takes_clips;
}

DropRates usual_drop_rates(const std::string& model_name) {
  const RegistryEntry* entry = find_entry(model_name);
  return entry == nullptr ? DropRates{} : entry->usual;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const RegistryEntry& entry : kRegistry) names.emplace_back(entry.name);
  return names;
}

std::vector<NamedTensor> state_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> state;
  for (const auto& item : module.named_parameters()) state.push_back({item.key(), item.value()});
  for (const auto& item : module.named_buffers()) state.push_back({item.key(), item.value()});
  return state;
}

int64_t parameter_count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

void to_channels_last(torch::nn::Module& module) {
  for (torch::Tensor& parameter : module.parameters()) {
    if (parameter.dim() != 4) continue;
    torch::Tensor weight = parameter.detach().contiguous(c10::MemoryFormat::ChannelsLast);
    // One input channel lies the same way in either order, but only strides that say so make the convolution answer in
    // it.
    if (weight.size(1) == 1) {
      const int64_t height = weight.size(2), width = weight.size(3);
      weight = weight.as_strided(weight.sizes(), {height * width, 1, width, 1});
    }
    parameter.set_data(weight);
  }
}

}  // namespace stoker::model
