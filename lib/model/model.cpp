// SPDX-License-Identifier: Apache-2.0
// The registry of networks.
#include "model/model.h"

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

std::shared_ptr<ImageModel> make_two_stream_of_backbones(const ModelSpec& spec);

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
    {"two_stream_convlstm", make_two_stream_of_backbones, {}, true, true},  // [B, T, in_chans, H, W]; two_stream.cpp
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

/// Any network by name, without its classifier. Throws Error{config} for networks that give no feature map.
std::shared_ptr<ImageModel> make_backbone(ModelSpec spec) {
  spec.num_classes = 0;
  std::shared_ptr<ImageModel> backbone = known_entry(spec).factory(spec);
  if (backbone->feature_channels() == 0) backbone->features({});  // says what is wrong
  return backbone;
}

std::shared_ptr<ImageModel> make_two_stream_of_backbones(const ModelSpec& spec) {
  return make_two_stream(spec, make_backbone);
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

std::shared_ptr<ImageModel> make_model(const ModelSpec& spec) {
  check_model_spec(spec);
  if (is_network_file(spec.name)) return make_script_network(spec);
  return known_entry(spec).factory(spec);
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

}  // namespace stoker::model
