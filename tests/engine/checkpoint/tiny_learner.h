// SPDX-License-Identifier: Apache-2.0
// The smallest network that can be saved and loaded, with what training needs.
#pragma once

#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace stoker::engine {

class OneLayer : public model::ImageModel {
 public:
  explicit OneLayer(int64_t outputs) { fc_ = register_module("fc", torch::nn::Linear(4, outputs)); }
  torch::Tensor forward(torch::Tensor images) override { return fc_(images.flatten(1)); }
  std::string head_prefix() const override { return "fc."; }

 private:
  torch::nn::Linear fc_{nullptr};
};

/// A network whose weights are all `weight`, with SGD and no average.
inline Learner learner_of(double weight, int64_t outputs = 2) {
  Learner learner;
  learner.model = std::make_shared<OneLayer>(outputs);
  const torch::NoGradGuard no_grad;
  std::vector<optim::NamedParameter> parameters;
  for (const auto& item : learner.model->named_parameters()) {
    item.value().fill_(weight);
    parameters.push_back({item.key(), item.value()});
  }
  learner.optimizer = std::make_unique<optim::Optimizer>(parameters, config::ResolvedOptimOptions());
  learner.scaler = std::make_unique<optim::GradScaler>(optim::GradScalerSettings{}, torch::kCPU);
  return learner;
}

inline double weight_of(const Learner& learner) {
  return learner.model->named_parameters()["fc.weight"][0][0].item<double>();
}

}  // namespace stoker::engine
