// SPDX-License-Identifier: Apache-2.0
#include "weights/load/convert.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/error.h"
#include "core/format.h"
#include "model/model.h"
#include "weights/load/fitting.h"
#include "weights/load/tensors.h"
#include "weights/names/name_plan.h"

namespace stoker::weights {
namespace {

using core::format;

constexpr int64_t kPatch = 16;  // pixels of a ViT
/// Of each family that other libraries have: one network, and a tensor that all of the family have and no other.
struct Family {
  const char *network, *tensor;
};
constexpr Family kFamilies[] = {{"resnet18", "layer1.0.conv1.weight"},
                                {"efficientnet_b0", "features.1.0.block.0.0.weight"},
                                {"mobilenet_v3_small", "features.1.block.0.0.weight"},
                                {"convnext_tiny", "features.1.0.layer_scale"},
                                {"vit_s_16", "encoder.pos_embedding"}};

std::vector<std::string> names_of(const model::ImageModel& network) {
  std::vector<std::string> names;
  for (const model::NamedTensor& entry : model::state_of(network)) names.push_back(entry.name);
  return names;
}

NamePlan plan_for(const std::string& network, const std::vector<std::string>& wanted, const WeightFile& file) {
  return plan_names(network, wanted, names_in(file), core::printable(file.path()));
}

/// The shape of what makes the tensor `ours`; empty where nothing does.
std::vector<int64_t> shape_in(const WeightFile& file, const NamePlan& plan, const std::string& ours) {
  for (const NamePlan::Source& source : plan.sources) {
    if (source.ours == ours) return file.tensors[source.theirs[0]].shape;
  }
  return {};
}

model::ModelSpec spec_of(const model::ImageModel& usual, const std::string& network, const WeightFile& file) {
  model::ModelSpec spec;
  spec.name = network;
  const NamePlan plan = plan_for(network, names_of(usual), file);
  const std::vector<int64_t> head = shape_in(file, plan, usual.head_prefix() + "weight");
  if (!head.empty()) spec.num_classes = std::max<int64_t>(1, head[0]);
  for (const model::NamedTensor& entry : model::state_of(usual)) {
    if (entry.tensor.dim() != 4) continue;
    const std::vector<int64_t> input = shape_in(file, plan, entry.name);
    if (input.size() == 4) spec.in_chans = std::max<int64_t>(1, input[1]);
    break;
  }
  const std::vector<int64_t> positions = shape_in(file, plan, "encoder.pos_embedding");
  if (positions.size() == 3 && positions[1] > 1) {
    spec.img_size = kPatch * std::max<int64_t>(1, std::lround(std::sqrt(static_cast<double>(positions[1] - 1))));
  }
  // Numbers that a damaged file may have, not those of a network.
  if (spec.num_classes > 1'000'000 || spec.in_chans > 10'000 || spec.img_size > 10'000) {
    throw core::Error(core::ErrorKind::data,
                      core::printable(file.path()) + ": its classifier or its input is too large");
  }
  return spec;
}

std::shared_ptr<model::ImageModel> usual_network(const std::string& network) {
  model::ModelSpec spec;
  spec.name = network;
  return model::make_model(spec);
}

/// "resnet": what the networks of a family have in common.
std::string family_of(const std::string& network) { return network.substr(0, network.find_first_of("0123456789_")); }

}  // namespace

Conversion convert_as_is(const WeightFile& file) {
  NamePlan plan = plan_for("", {}, file);
  std::sort(plan.sources.begin(), plan.sources.end(),
            [](const NamePlan::Source& a, const NamePlan::Source& b) { return a.theirs[0] < b.theirs[0]; });
  TensorReader reader(file);
  Conversion conversion;
  for (const NamePlan::Source& source : plan.sources) {
    conversion.tensors.push_back({source.ours, reader.read(source.theirs[0])});
  }
  return conversion;
}

Conversion convert_for(const std::string& network, const WeightFile& file) {
  const std::shared_ptr<model::ImageModel> usual = usual_network(network);
  if (!usual->backbones().empty()) {
    throw core::Error(core::ErrorKind::config, network + " is made of other networks, whose weights are converted",
                      "name the network of its backbones with --model");
  }
  const std::shared_ptr<model::ImageModel> model = model::make_model(spec_of(*usual, network, file));
  Conversion conversion;
  conversion.report = load_pretrained(*model, network, "", file);
  conversion.tensors = model::state_of(*model);
  return conversion;
}

std::vector<std::string> networks_of(const WeightFile& file) {
  std::vector<std::string> found;
  TensorReader reader(file);
  for (const Family& family : kFamilies) {
    if (plan_for(family.network, {family.tensor}, file).matched == 0) continue;
    for (const std::string& network : model::model_names()) {
      if (family_of(network) != family_of(family.network) || network == "resnet9") continue;
      const model::ModelSpec spec = spec_of(*usual_network(network), network, file);
      const auto model = model::make_model(spec);
      const NamePlan plan = plan_for(network, names_of(*model), file);
      const Fitted fitted = fit({model.get(), true}, model::state_of(*model), plan, file, reader);
      if (!fitted.problems.empty()) continue;
      const std::string classes =
          fitted.fresh_absent.empty() ? format("{} classes", spec.num_classes) : "no classifier";
      found.push_back(format("{} ({}, {} channels, names of {})", network, classes, spec.in_chans, plan.dialect));
      break;  // no two of a family have the same tensors
    }
  }
  return found;
}

}  // namespace stoker::weights
