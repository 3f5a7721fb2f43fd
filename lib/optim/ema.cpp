// SPDX-License-Identifier: Apache-2.0
// The moving average of weights; knows no optimizer.
#include "optim/ema.h"

#include <algorithm>

#include "optim/torch_kernels.h"

namespace stoker::optim {

Ema::Ema(const torch::nn::Module& model, double decay, bool warmup) : decay_(decay), warmup_(warmup) {
  torch::NoGradGuard no_grad;
  const auto add = [this](const std::string& name, const torch::Tensor& tensor) {
    const torch::Tensor own = tensor.detach();
    const bool floating = own.is_floating_point();
    averages_.push_back({name, (floating ? own.to(torch::kFloat32) : own).clone()});
    own_.push_back(tensor);
    if (!floating) return;
    floats_.push_back(tensor);
    float_averages_.push_back(averages_.back().tensor);
  };
  for (const auto& item : model.named_parameters()) add(item.key(), item.value());
  for (const auto& item : model.named_buffers()) add(item.key(), item.value());
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
  for (size_t i = 0; i < own_.size(); ++i) {
    if (!averages_[i].tensor.is_floating_point()) averages_[i].tensor.copy_(own_[i]);
  }
  counters_are_behind_ = false;
}

void Ema::swap() {
  torch::NoGradGuard no_grad;
  take_counters();
  for (size_t i = 0; i < own_.size(); ++i) {
    const torch::Tensor own = own_[i].clone();
    own_[i].copy_(averages_[i].tensor);
    averages_[i].tensor.copy_(own);
  }
}

}  // namespace stoker::optim
