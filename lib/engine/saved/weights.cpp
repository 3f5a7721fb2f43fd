// SPDX-License-Identifier: Apache-2.0
#include "engine/saved/weights.h"

#include <c10/core/GradMode.h>

#include <map>
#include <unordered_map>

#include "core/error.h"
#include "core/format.h"

namespace stoker::engine {
namespace {

using core::format;
using model::NamedTensor;

std::unordered_map<std::string, torch::Tensor> by_name(const std::vector<NamedTensor>& tensors) {
  std::unordered_map<std::string, torch::Tensor> map;
  for (const NamedTensor& entry : tensors) map.emplace(entry.name, entry.tensor);
  return map;
}

std::string shape_text(const torch::Tensor& tensor) {
  std::string text = format("{}", c10::toString(tensor.scalar_type()));
  text += "[";
  for (int64_t i = 0; i < tensor.dim(); ++i) text += format("{}{}", i > 0 ? "," : "", tensor.size(i));
  return text + "]";
}

bool same_kind(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
}

}  // namespace

void require_same_table(const std::vector<NamedTensor>& wanted, const std::vector<NamedTensor>& given,
                        const std::string& what, const std::string& hint) {
  std::vector<std::string> problems;
  auto left = by_name(given);
  for (const NamedTensor& entry : wanted) {
    const auto found = left.find(entry.name);
    if (found == left.end()) {
      problems.push_back(entry.name + " is missing");
      continue;
    }
    if (!same_kind(entry.tensor, found->second)) {
      problems.push_back(
          format("{} is {} instead of {}", entry.name, shape_text(found->second), shape_text(entry.tensor)));
    }
    left.erase(found);
  }
  for (const NamedTensor& entry : given) {
    if (left.count(entry.name) > 0) problems.push_back(core::printable(entry.name) + " is not of this model");
  }
  if (problems.empty()) return;
  throw core::Error(core::ErrorKind::data, format("{}: {}", what, core::list_text(problems, 20)), hint);
}

std::vector<NamedTensor> matching_tensors(const std::vector<NamedTensor>& targets,
                                          const std::vector<NamedTensor>& given, std::vector<std::string>& lines) {
  constexpr size_t kNamed = 3;
  std::map<std::string, std::vector<std::string>> fresh, left_out;  // by kind
  const auto add = [](const std::string& name, std::map<std::string, std::vector<std::string>>& kinds) {
    const size_t dot = name.find('.');
    kinds[name.substr(0, dot)].push_back(core::printable(name.substr(dot + 1)));
  };
  auto left = by_name(given);
  std::vector<NamedTensor> fitting;
  for (const NamedTensor& target : targets) {
    const auto found = left.find(target.name);
    if (found != left.end() && same_kind(target.tensor, found->second)) {
      fitting.push_back(target);
      left.erase(found);
    } else {
      add(target.name, fresh);
    }
  }
  for (const NamedTensor& entry : given) {
    if (left.count(entry.name) > 0) add(entry.name, left_out);
  }
  for (const auto& [kind, names] : fresh)
    lines.push_back(format("{} is reset: {}", kind, core::list_text(names, kNamed)));
  for (const auto& [kind, names] : left_out)
    lines.push_back(format("{} of the checkpoint is left out: {}", kind, core::list_text(names, kNamed)));
  return fitting;
}

void copy_by_name(const std::vector<NamedTensor>& targets, const std::vector<NamedTensor>& sources) {
  const c10::NoGradGuard no_gradients;
  const auto values = by_name(sources);
  for (const NamedTensor& target : targets) {
    torch::Tensor tensor = target.tensor;
    tensor.copy_(values.at(target.name));
  }
}

void load_weights(torch::nn::Module& module, const std::vector<NamedTensor>& weights, const std::string& what) {
  const auto targets = model::state_of(module);
  require_same_table(targets, weights, what,
                     "restore the checkpoint, whose config.yaml, preprocess.json and weights belong together");
  copy_by_name(targets, weights);
}

}  // namespace stoker::engine
