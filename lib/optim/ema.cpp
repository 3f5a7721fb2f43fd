// SPDX-License-Identifier: Apache-2.0
// The moving average of weights, for any optimizer.
#include "optim/ema.h"

#include <algorithm>

#include "model/buffers.h"
#include "optim/torch_kernels.h"

namespace stoker::optim {

namespace {

/// Where `buffer` lies in what covers all buffers, of `averages` of the same layout.
torch::Tensor part_for(const torch::Tensor& buffer, const std::vector<torch::Tensor>& joined,
                       const std::vector<torch::Tensor>& averages) {
  for (size_t i = 0; i < joined.size(); ++i) {
    const int64_t begin = buffer.storage_offset() - joined[i].storage_offset();
    if (!joined[i].is_alias_of(buffer) || begin < 0 || begin + buffer.numel() > joined[i].numel()) continue;
    if (joined[i].sizes() == buffer.sizes()) return averages[i];
    return averages[i].as_strided(buffer.sizes(), buffer.strides(), averages[i].storage_offset() + begin);
  }
  return {};  // there is none that is not covered
}

}  // namespace

Ema::Ema(const torch::nn::Module& model, double decay, bool warmup) : decay_(decay), warmup_(warmup) {
  torch::NoGradGuard no_grad;
  const auto add = [this](const torch::Tensor& tensor) {
    const torch::Tensor own = tensor.detach();
    const bool floating = own.is_floating_point();
    const torch::Tensor average = (floating ? own.to(torch::kFloat32) : own).clone();
    (floating ? floats_ : own_counters_).push_back(tensor);
    (floating ? float_averages_ : counters_).push_back(average);
    return average;
  };
  for (const auto& item : model.named_parameters()) averages_.push_back({item.key(), add(item.value())});
  const std::vector<torch::Tensor> joined = model::joined_buffers(model);
  std::vector<torch::Tensor> of_joined;
  for (const torch::Tensor& buffers : joined) of_joined.push_back(add(buffers));
  for (const auto& item : model.named_buffers()) {
    averages_.push_back({item.key(), part_for(item.value(), joined, of_joined)});
  }
}

void Ema::update(const torch::Tensor& found_inf) {
  torch::NoGradGuard no_grad;
  const auto t = static_cast<double>(updates_);
  const double share = 1 - (warmup_ ? std::min(decay_, (1 + t) / (10 + t)) : decay_);
  ++updates_;
  counters_are_behind_ = true;
  if (found_inf.defined()) {
    approach_all(float_averages_, floats_, share * (1 - found_inf));
  } else {
    approach_all(float_averages_, floats_, share);
  }
}

void Ema::take_counters() {
  if (!counters_are_behind_) return;
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < counters_.size(); ++i) counters_[i].copy_(own_counters_[i]);
  counters_are_behind_ = false;
}

void Ema::swap() {
  torch::NoGradGuard no_grad;
  take_counters();
  const auto swap_all = [](const std::vector<torch::Tensor>& own, const std::vector<torch::Tensor>& averages) {
    for (size_t i = 0; i < own.size(); ++i) {
      const torch::Tensor before = own[i].clone();
      own[i].copy_(averages[i]);
      averages[i].copy_(before);
    }
  };
  swap_all(floats_, float_averages_);
  swap_all(own_counters_, counters_);
}

}  // namespace stoker::optim
