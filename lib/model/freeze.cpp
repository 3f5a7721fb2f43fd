// SPDX-License-Identifier: Apache-2.0
#include "model/freeze.h"

#include <fnmatch.h>

#include <sstream>

#include "core/error.h"
#include "core/format.h"

namespace stoker::model {
namespace {

/// Whether the glob matches `name` or one of the modules around it: "a.b.c" is in "a.b" and "a".
bool matches(const std::string& glob, std::string name) {
  for (;;) {
    if (::fnmatch(glob.c_str(), name.c_str(), 0) == 0) return true;
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) return false;
    name.resize(dot);
  }
}

/// "conv1, bn1, layer1, ...": what a pattern may name.
std::string top_level_names(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& item : module.named_children()) names.push_back(item.key());
  return core::list_text(names, names.size());
}

void apply_pattern(torch::nn::Module& model, const std::string& pattern) {
  const bool learns = !pattern.empty() && pattern[0] == '!';
  const std::string glob = learns ? pattern.substr(1) : pattern;
  bool found = false;
  for (auto& item : model.named_parameters()) {
    if (!matches(glob, item.key())) continue;
    item.value().set_requires_grad(learns);
    found = true;
  }
  if (found) return;
  throw core::Error(core::ErrorKind::config, core::format("--freeze {}: no parameter has such a name", pattern),
                    "patterns match parameters or modules, such as: " + top_level_names(model));
}

bool is_frozen_norm(const torch::nn::Module& module) {
  bool has_statistics = false;
  for (const auto& buffer : module.named_buffers(/*recurse=*/false)) {
    has_statistics = has_statistics || buffer.key() == "running_mean";
  }
  if (!has_statistics) return false;
  for (const torch::Tensor& parameter : module.parameters(/*recurse=*/false)) {
    if (parameter.requires_grad()) return false;
  }
  return true;
}

}  // namespace

void freeze(ImageModel& model, const std::string& patterns) {
  if (patterns.empty()) return;
  for (const std::string& pattern : core::split_words(patterns, ',')) apply_pattern(model, pattern);
  if (frozen_count(model) == parameter_count(model)) {
    throw core::Error(core::ErrorKind::config, core::format("--freeze {} leaves nothing to learn", patterns),
                      core::format("let the classifier learn: add ,!{}*", model.head_prefix()));
  }
  rest_frozen_norms(model);
}

void freeze_backbone(ImageModel& model) {
  for (auto& item : model.named_parameters()) {
    if (model.is_in_backbone(item.key())) item.value().set_requires_grad(false);
  }
  rest_frozen_norms(model);
}

void rest_frozen_norms(ImageModel& model) {
  std::vector<std::shared_ptr<torch::nn::Module>> still;
  const bool has_frozen = frozen_count(model) > 0;  // else a norm without parameters trains
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (has_frozen && is_frozen_norm(*module)) still.push_back(module);
  }
  model.keep_in_evaluation(std::move(still));
}

int64_t frozen_count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.requires_grad() ? 0 : parameter.numel();
  return count;
}

}  // namespace stoker::model
