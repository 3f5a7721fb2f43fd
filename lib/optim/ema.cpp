// SPDX-License-Identifier: Apache-2.0
// The moving average of weights; knows no optimizer.
#include "optim/ema.h"

#include <algorithm>

#include "core/error.h"
#include "optim/torch_kernels.h"

namespace stoker::optim {
namespace {

struct ModelValue {
  std::string name;
  torch::Tensor tensor;
};

/// Parameters, then buffers, in registration order.
std::vector<ModelValue> model_values(const torch::nn::Module& model) {
  std::vector<ModelValue> values;
  for (const auto& item : model.named_parameters()) values.push_back({item.key(), item.value().detach()});
  for (const auto& item : model.named_buffers()) values.push_back({item.key(), item.value().detach()});
  return values;
}

void check_count(size_t values, size_t averages) {
  if (values != averages) throw core::Error(core::ErrorKind::bug, "the moving average is of another model");
}

}  // namespace

Ema::Ema(const torch::nn::Module& model, double decay, bool warmup) : decay_(decay), warmup_(warmup) {
  torch::NoGradGuard no_grad;
  for (const ModelValue& value : model_values(model)) {
    const bool floating = value.tensor.is_floating_point();
    averages_.push_back({value.name, (floating ? value.tensor.to(torch::kFloat32) : value.tensor).clone()});
  }
}

void Ema::update(const torch::nn::Module& model, const torch::Tensor& found_inf) {
  torch::NoGradGuard no_grad;
  const std::vector<ModelValue> values = model_values(model);
  check_count(values.size(), averages_.size());
  const auto t = static_cast<double>(updates_);
  const double share = 1 - (warmup_ ? std::min(decay_, (1 + t) / (10 + t)) : decay_);
  ++updates_;
  std::vector<torch::Tensor> floats, float_averages;
  for (size_t i = 0; i < values.size(); ++i) {
    torch::Tensor& average = averages_[i].tensor;
    if (average.is_floating_point()) {
      float_averages.push_back(average);
      floats.push_back(values[i].tensor.to(torch::kFloat32));
    } else if (found_inf.defined()) {
      average.copy_(torch::where(found_inf.reshape({}) > 0, average, values[i].tensor));
    } else {
      average.copy_(values[i].tensor);
    }
  }
  if (found_inf.defined()) {
    approach_all(float_averages, floats, share * (1 - found_inf));
  } else {
    approach_all(float_averages, floats, share);
  }
}

void Ema::swap(torch::nn::Module& model) {
  torch::NoGradGuard no_grad;
  const std::vector<ModelValue> values = model_values(model);
  check_count(values.size(), averages_.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const torch::Tensor own = values[i].tensor.clone();
    torch::Tensor(values[i].tensor).copy_(averages_[i].tensor);
    averages_[i].tensor.copy_(own);
  }
}

}  // namespace stoker::optim
