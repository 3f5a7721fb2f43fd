// SPDX-License-Identifier: Apache-2.0
#include "engine/step/lanes.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/error.h"
#include "core/format.h"
#include "engine/device/precision.h"
#include "engine/device/recorded_threads.h"
#include "engine/memory/activation_arena.h"
#include "model/buffers.h"

namespace stoker::engine {
namespace {

std::shared_ptr<model::ImageModel> twin_of(const Learner& learner) {
  if (!learner.make_twin) throw core::Error(core::ErrorKind::bug, "several lanes, but no way to make their networks");
  return learner.make_twin();
}

Lane lane_with(std::shared_ptr<model::ImageModel> network, const Learner& learner) {
  Lane lane;
  std::map<std::string, torch::Tensor> by_name;
  for (const auto& item : network->named_parameters()) by_name[item.key()] = item.value();
  for (const optim::NamedParameter& parameter : learner.optimizer->parameters()) {
    lane.parameters.push_back(by_name.at(parameter.name));
  }
  for (const torch::Tensor& buffer : model::joined_buffers(*network)) {
    (buffer.is_floating_point() ? lane.floats : lane.others).push_back(buffer);
  }
  lane.network = std::move(network);
  return lane;
}

bool same_sizes(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const torch::Tensor& x, const torch::Tensor& y) { return x.sizes() == y.sizes(); });
}

void prepare_thread(int64_t lane) {
  at::set_num_threads(1);
  use_activation_arena(lane);
}

}  // namespace

Lanes::Lanes(Learner& learner, int64_t count) : learner_(learner), team_(count, prepare_thread) {
  lanes_.push_back(lane_with(learner.model, learner));
  for (int64_t i = 1; i < count; ++i) {
    lanes_.push_back(lane_with(twin_of(learner), learner));
    if (!same_sizes(lanes_[0].floats, lanes_.back().floats) || !same_sizes(lanes_[0].others, lanes_.back().others)) {
      throw core::Error(core::ErrorKind::bug, "the buffers of a twin lie in another way");
    }
  }
}

void Lanes::run(const std::function<void(int64_t)>& work) {
  follow_learner();
  const RecordedThreads recorded;
  team_.run([&](int64_t lane) {
    const RecordedThreads::Scope recorded_too(recorded);
    // Some releases share the cache of converted weights between threads: one would empty it for the others.
    const NoAutocastCacheScope without_cache;
    work(lane);
  });
}

void Lanes::forget_gradients() {
  for (Lane& lane : lanes_) {
    for (torch::Tensor& parameter : lane.parameters) parameter.mutable_grad().reset();
  }
}

void Lanes::make_hooks() {
  for (Lane& lane : lanes_) lane.hooks = std::make_unique<GradientHooks>(lane.parameters);
}

/// A parameter of a lane lies on the memory of the learner's, which may have moved.
void Lanes::follow_learner() {
  const std::vector<torch::Tensor> weights = learner_.model->parameters();
  for (size_t i = 1; i < lanes_.size(); ++i) {
    model::ImageModel& network = *lanes_[i].network;
    if (network.is_training() != learner_.model->is_training()) network.train(learner_.model->is_training());
    const std::vector<torch::Tensor> own = network.parameters();
    for (size_t k = 0; k < own.size(); ++k) {
      if (own[k].is_alias_of(weights[k]) && own[k].strides() == weights[k].strides()) continue;
      if (own[k].sizes() != weights[k].sizes()) throw core::Error(core::ErrorKind::bug, "a twin of another network");
      torch::Tensor(own[k]).set_data(weights[k].detach());
    }
  }
}

}  // namespace stoker::engine
