// SPDX-License-Identifier: Apache-2.0
#include "model/low_rank.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/format.h"

namespace stoker::model {
namespace {

constexpr double kFactor = 2;  // alpha / rank
constexpr char kFirst[] = "lora_A", kSecond[] = "lora_B";

bool has_ending(const std::string& text, const std::string& ending) {
  return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

/// In float32 whatever the network computes in: a rounded sum would lose what was learned.
torch::Tensor merged_weight(const torch::Tensor& weight, const torch::Tensor& a, const torch::Tensor& b) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return at::addmm(weight, b, a, /*beta=*/1, /*alpha=*/kFactor);
}

bool fit_together(const torch::Tensor& weight, const torch::Tensor& a, const torch::Tensor& b) {
  const auto is_matrix = [](const torch::Tensor& one) { return one.dim() == 2 && one.scalar_type() == at::kFloat; };
  return is_matrix(weight) && is_matrix(a) && is_matrix(b) && b.size(0) == weight.size(0) &&
         a.size(1) == weight.size(1) && b.size(1) == a.size(0);
}

}  // namespace

void LowRank::add_to(torch::nn::Module& owner, const std::string& prefix, const torch::Tensor& weight, int64_t rank) {
  const torch::NoGradGuard no_gradients;
  torch::Tensor first = at::empty({rank, weight.size(1)}, at::kFloat);  // drawn on the CPU: alike for every device
  torch::nn::init::kaiming_uniform_(first, std::sqrt(5.0));
  a_ = owner.register_parameter(prefix + kFirst, first.to(weight.device()));
  b_ = owner.register_parameter(prefix + kSecond, at::zeros({weight.size(0), rank}, weight.options()));
}

torch::Tensor LowRank::apply(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                             bool trains) const {
  if (!a_.defined()) return at::linear(x, weight, bias);
  if (!trains) return at::linear(x, merged_weight(weight, a_, b_), bias);
  return at::linear(x, weight, bias) + kFactor * at::linear(at::linear(x, a_), b_);
}

void add_low_rank(ImageModel& model, int64_t rank, const std::string& name) {
  for (auto& item : model.named_parameters()) {
    if (model.is_in_backbone(item.key())) item.value().set_requires_grad(false);
  }
  bool found = false;
  for (const auto& part : model.modules(/*include_self=*/false)) {
    auto* const layer = dynamic_cast<LowRankLayer*>(part.get());
    if (layer == nullptr) continue;
    layer->add_low_rank(rank);
    found = true;
  }
  if (found) return;
  throw core::Error(core::ErrorKind::config,
                    core::format("--lora {}: {} has no linear layers that could learn so", rank, name),
                    "choose a ViT, a Swin or a ConvNeXt with --model, or --freeze instead of --lora");
}

std::vector<NamedTensor> merged(std::vector<NamedTensor> tensors) {
  const torch::NoGradGuard no_gradients;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].name, i);
  std::vector<bool> is_gone(tensors.size(), false);
  for (const auto& [name, place] : places) {
    if (!has_ending(name, kFirst)) continue;
    const std::string prefix = name.substr(0, name.size() - std::string(kFirst).size());
    const auto second = places.find(prefix + kSecond), weight = places.find(prefix + "weight");
    if (second == places.end() || weight == places.end()) continue;
    NamedTensor& whole = tensors[weight->second];
    const torch::Tensor &a = tensors[place].tensor, &b = tensors[second->second].tensor;
    if (!fit_together(whole.tensor, a, b)) continue;
    whole.tensor = merged_weight(whole.tensor, a, b);
    is_gone[place] = is_gone[second->second] = true;
  }
  std::vector<NamedTensor> left;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!is_gone[i]) left.push_back(std::move(tensors[i]));
  }
  return left;
}

}  // namespace stoker::model
