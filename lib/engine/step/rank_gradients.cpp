// SPDX-License-Identifier: Apache-2.0
#include "engine/step/rank_gradients.h"

#include <ATen/ops/zeros_like.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace stoker::engine {
namespace {

/// One character per parameter, '1' where it has a gradient; then the number of images.
std::string describe(const std::vector<optim::NamedParameter>& parameters, int64_t images) {
  std::string text;
  for (const optim::NamedParameter& parameter : parameters) text += parameter.tensor.grad().defined() ? '1' : '0';
  return text + std::to_string(images);
}

}  // namespace

int64_t sum_gradients(Group& group, const optim::Optimizer& optimizer, int64_t images) {
  if (group.size() == 1) return images;
  const std::vector<optim::NamedParameter>& parameters = optimizer.parameters();
  const std::vector<std::string> ranks = group.gather(describe(parameters, images));
  int64_t all_images = 0;
  for (const std::string& rank : ranks) {
    if (rank.size() <= parameters.size()) throw core::Error(core::ErrorKind::bug, "ranks train different networks");
    all_images += std::stoll(rank.substr(parameters.size()));
  }
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < parameters.size(); ++i) {
    bool is_there = false;
    for (const std::string& rank : ranks) is_there |= rank[i] == '1';
    if (!is_there) continue;
    at::Tensor parameter = parameters[i].tensor;
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
    gradients.push_back(parameter.grad());
  }
  group.sum(gradients);
  return all_images;
}

}  // namespace stoker::engine
