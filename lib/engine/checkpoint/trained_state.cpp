// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/trained_state.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "engine/files/checkpoint_files.h"
#include "engine/saved/safetensors.h"

namespace stoker::engine {
namespace {

constexpr const char* kOptimizer = "optimizer: ";
constexpr const char* kAverage = "average: ";

void append(const char* prefix, const std::vector<NamedTensor>& tensors, std::vector<NamedTensor>& all) {
  for (const NamedTensor& entry : tensors) all.push_back({prefix + entry.name, entry.tensor});
}

torch::Tensor plain(const torch::Tensor& tensor) { return tensor.detach().to(torch::kCPU).contiguous(); }

bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.nbytes() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

}  // namespace

std::vector<NamedTensor> optimizer_state(Learner& learner) {
  std::vector<NamedTensor> tensors;
  for (const auto& entry : learner.optimizer->state()) tensors.push_back({entry.name, entry.tensor});
  if (learner.scaler->enabled()) {
    tensors.push_back({"scaler.scale", learner.scaler->scale()});
    tensors.push_back({"scaler.growth_tracker", learner.scaler->growth_tracker()});
    tensors.push_back({"scaler.skipped", learner.scaler->skipped()});
  }
  tensors.insert(tensors.end(), learner.statistics_before.begin(), learner.statistics_before.end());
  return tensors;
}

void put_statistics_back(std::vector<NamedTensor>& state, const std::string& prefix, std::vector<NamedTensor>& weights,
                         const std::string& what) {
  const auto begin = std::stable_partition(state.begin(), state.end(),
                                           [&](const NamedTensor& entry) { return entry.name.rfind(prefix, 0) != 0; });
  for (auto entry = begin; entry != state.end(); ++entry) {
    const auto weight = std::find_if(weights.begin(), weights.end(), [&](const NamedTensor& one) {
      return one.name == entry->name.substr(prefix.size());
    });
    if (weight == weights.end() || weight->tensor.sizes() != entry->tensor.sizes() ||
        weight->tensor.scalar_type() != entry->tensor.scalar_type()) {
      throw core::Error(core::ErrorKind::data, what + ": there is nothing like " + core::printable(entry->name),
                        "use another checkpoint");
    }
    weight->tensor = entry->tensor;
  }
  state.erase(begin, state.end());
}

std::vector<NamedTensor> average_state(Learner& learner) {
  std::vector<NamedTensor> tensors;
  for (const auto& entry : learner.ema->averages()) tensors.push_back({entry.name, entry.tensor});
  return tensors;
}

std::string state_name(const std::string& name) { return kOptimizer + name; }

std::vector<NamedTensor> trained_state(Learner& learner) {
  std::vector<NamedTensor> all = model::state_of(*learner.model);
  append(kOptimizer, optimizer_state(learner), all);
  if (learner.ema) append(kAverage, average_state(learner), all);
  return all;
}

std::vector<NamedTensor> read_trained_state(const std::string& path) {
  verify_checkpoint(path);
  std::vector<NamedTensor> all = read_safetensors(path + "/model.safetensors").tensors;
  append(kOptimizer, read_safetensors(path + "/optimizer.safetensors").tensors, all);
  const std::string average = path + "/model_ema.safetensors";
  if (core::file_exists(average)) append(kAverage, read_safetensors(average).tensors, all);
  return all;
}

StateDifference compare_states(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  std::map<std::string, torch::Tensor> others;
  for (const NamedTensor& entry : b) others[entry.name] = entry.tensor;
  StateDifference found;
  for (const NamedTensor& entry : a) {
    const auto other = others.find(entry.name);
    const bool is_comparable = other != others.end() && other->second.scalar_type() == entry.tensor.scalar_type() &&
                               other->second.sizes() == entry.tensor.sizes();
    if (!is_comparable) {
      found.only_one.push_back(entry.name);
    } else {
      ++found.tensors;
      const torch::Tensor x = plain(entry.tensor), y = plain(other->second);
      if (!same_bits(x, y)) {
        const double by = (x.to(at::kDouble) - y.to(at::kDouble)).abs().max().item<double>();
        if (found.different.empty()) found.largest = by;
        found.different.push_back(entry.name);
        const double size = std::isfinite(by) ? by : std::numeric_limits<double>::infinity();
        if (found.most_different.empty() || size > found.most) {
          found.most_different = entry.name;
          found.most = size;
        }
      }
    }
    if (other != others.end()) others.erase(other);
  }
  for (const auto& [name, tensor] : others) found.only_one.push_back(name);
  return found;
}

}  // namespace stoker::engine
