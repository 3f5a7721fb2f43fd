// SPDX-License-Identifier: Apache-2.0
// Threads of one process that compute replicas of one network at the same time. They share the weights; each has
// gradients and buffers of its own, and computes with one thread, so that no bit depends on how many there are.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/system/thread_team.h"
#include "engine/step/gradient_hooks.h"
#include "engine/step/learner.h"

namespace stoker::engine {

struct Lane {
  std::shared_ptr<model::ImageModel> network;
  std::vector<torch::Tensor> parameters;  ///< of the network, in the order of the optimizer's
  std::vector<torch::Tensor> floats;      ///< its buffers with floating point numbers
  std::vector<torch::Tensor> others;      ///< the rest of them
  std::unique_ptr<GradientHooks> hooks;   ///< of `parameters`; null where nobody asked for them
};

class Lanes {
 public:
  /// Lane 0 is the calling thread with the learner's own network. Each of the others has a thread, and a network that
  /// learner.make_twin gave. `learner` is borrowed. Throws Error{os} when there are no more threads.
  Lanes(Learner& learner, int64_t count);

  int64_t count() const { return team_.size(); }
  Lane& lane(int64_t number) { return lanes_[static_cast<size_t>(number)]; }

  /// Calls work(lane) on every lane at the same time, as core::ThreadTeam::run() does. The networks have the weights of
  /// the learner's, and train or evaluate as that does.
  void run(const std::function<void(int64_t lane)>& work);
  /// Frees the gradients of all lanes.
  void forget_gradients();
  /// Gives every lane its hooks.
  void make_hooks();
  /// Work of another kind for the same threads. Not while run() is under way.
  core::ThreadTeam& team() { return team_; }

 private:
  void follow_learner();

  Learner& learner_;
  std::vector<Lane> lanes_;
  core::ThreadTeam team_;
};

}  // namespace stoker::engine
