// SPDX-License-Identifier: Apache-2.0
// The registry of networks and what every network shares. Knows no architecture in detail.
#include "model/model.h"

#include <c10/core/MemoryFormat.h>

#include "core/error.h"
#include "core/format.h"
#include "model/architectures.h"

namespace stoker::model {
namespace {

using ModelFactory = std::shared_ptr<ImageModel> (*)(const ModelSpec&);

struct RegistryEntry {
  const char* name;
  ModelFactory factory;
};

// All take [B, in_chans, H, W] and give [B, num_classes]. Parameters are for 1000 classes and 3 channels.
constexpr RegistryEntry kRegistry[] = {
    {"small_cnn", make_small_cnn},  // see small_cnn.cpp
    {"peer_cnn", make_peer_cnn},    // 32-32-pool-64-64-pool-128 channels
    {"resnet18", make_resnet},      // 64-128-256-512 channels at 1/4 ... 1/32; 11,689,512 parameters
    {"resnet34", make_resnet},      // as resnet18, deeper; 21,797,672
    {"resnet50", make_resnet},      // 256-512-1024-2048 channels at 1/4 ... 1/32; 25,557,032
    {"resnet101", make_resnet},     // 44,549,160
    {"resnet152", make_resnet},     // 60,192,808
};

[[noreturn]] void refuse_unknown_model(const std::string& name) {
  const std::vector<std::string> known = model_names();
  const std::string nearest = core::nearest_name(name, known);
  throw core::Error(
      core::ErrorKind::config,
      core::format("unknown model '{}'; known models: {}", name, core::list_text(known, known.size())),
      nearest.empty() ? "choose one of the known models with --model"
                      : core::format("did you mean '{}'?", nearest));
}

void check_model_spec(const ModelSpec& spec) {
  const auto require_positive = [](const char* what, int64_t value) {
    if (value < 1) {
      throw core::Error(core::ErrorKind::config,
                        core::format("{} is {}, but must be at least 1", what, value));
    }
  };
  require_positive("the number of input channels", spec.in_chans);
  require_positive("the number of classes", spec.num_classes);
  require_positive("the width", spec.width);
}

}  // namespace

std::shared_ptr<ImageModel> make_model(const ModelSpec& spec) {
  check_model_spec(spec);
  for (const RegistryEntry& entry : kRegistry) {
    if (spec.name == entry.name) return entry.factory(spec);
  }
  refuse_unknown_model(spec.name);
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
    parameter.set_data(parameter.detach().contiguous(c10::MemoryFormat::ChannelsLast));
  }
}

}  // namespace stoker::model
