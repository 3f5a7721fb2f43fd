// SPDX-License-Identifier: Apache-2.0
// The registry of networks.
#include "model/model.h"

#include "core/error.h"
#include "core/format.h"
#include "model/architectures.h"
#include "model/layers/conv.h"
#include "model/names.h"
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

constexpr RegistryEntry kRegistry[] = {
#define STOKER_NETWORK(name, factory, usual, takes_drop_path, takes_clips) \
  {#name, factory, usual, takes_drop_path, takes_clips},
#include "model/networks.inc"
#undef STOKER_NETWORK
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

/// The requested network, if it supports the requested options.
const RegistryEntry& known_entry(const ModelSpec& spec) {
  const RegistryEntry* entry = find_entry(spec.name);
  if (entry == nullptr) refuse_unknown_model(spec.name);
  if (spec.drop_path_rate == 0 || entry->takes_drop_path) return *entry;
  throw core::Error(
      core::ErrorKind::config,
      core::format("{} has no stochastic depth, but drop-path-rate is {:g}", spec.name, spec.drop_path_rate),
      "leave --drop-path-rate out, or choose an EfficientNet, a ConvNeXt, a ViT or a Swin");
}

/// Any network by name, without its classifier. Throws Error{config} for networks that give no feature map.
std::shared_ptr<ImageModel> make_backbone(ModelSpec spec) {
  spec.num_classes = 0;
  std::shared_ptr<ImageModel> backbone = known_entry(spec).factory(spec);
  if (backbone->feature_channels() == 0) backbone->features({});  // throws with the cause
  return backbone;
}

void pad_as_tensorflow(ImageModel& model, const std::string& name) {
  bool halves = false;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* const layer = module->as<ConvNormAct>()) {
      layer->use_same_padding();
      halves = true;
    }
  }
  if (halves) return;
  throw core::Error(core::ErrorKind::config, core::format("{} does not pad as TensorFlow does (--same-padding)", name),
                    "it is for weights of timm's tf_efficientnet and tf_mobilenetv3 in networks of these names");
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
  require_positive("the image size", spec.img_size.short_side());
  require_positive("the number of ConvLSTM channels", spec.lstm_channels);
}

}  // namespace

std::shared_ptr<ImageModel> make_two_stream_of_backbones(const ModelSpec& spec) {
  return make_two_stream(spec, make_backbone);
}

std::shared_ptr<ImageModel> make_model(const ModelSpec& spec) {
  check_model_spec(spec);
  if (is_network_file(spec.name)) return make_script_network(spec);
  std::shared_ptr<ImageModel> model = known_entry(spec).factory(spec);
  if (spec.same_padding) pad_as_tensorflow(*model, spec.name);
  return model;
}

bool takes_clips(const std::string& model_name) {
  const RegistryEntry* entry = find_entry(model_name);
  return entry != nullptr && entry->takes_clips;
}

DropRates usual_drop_rates(const std::string& model_name) {
  const RegistryEntry* entry = find_entry(model_name);
  return entry == nullptr ? DropRates{} : entry->usual;
}

}  // namespace stoker::model
