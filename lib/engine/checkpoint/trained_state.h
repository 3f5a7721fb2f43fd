// SPDX-License-Identifier: Apache-2.0
// All tensors that training moves, of a learner or as a checkpoint holds them: what two of them are compared by.
#pragma once

#include <string>
#include <vector>

#include "engine/step/learner.h"

namespace stoker::engine {

/// The optimizer's state, with the loss scaler's where there is one, and the learner's statistics_before.
std::vector<model::NamedTensor> optimizer_state(Learner& learner);
/// Gives `weights` the running statistics of training that `state` holds under `prefix`, and takes them out of it.
/// Throws Error{data} naming `what` where they do not fit.
void put_statistics_back(std::vector<model::NamedTensor>& state, const std::string& prefix,
                         std::vector<model::NamedTensor>& weights, const std::string& what);
/// The moving average of the weights; `learner` has one.
std::vector<model::NamedTensor> average_state(Learner& learner);

/// "optimizer: NAME": what optimizer_state() calls NAME in trained_state().
std::string state_name(const std::string& name);
/// Weights and buffers by name, then "optimizer: NAME", then "average: NAME". They are the learner's own.
std::vector<model::NamedTensor> trained_state(Learner& learner);
/// The trained_state() of a checkpoint folder. Throws as verify_checkpoint().
std::vector<model::NamedTensor> read_trained_state(const std::string& path);

/// Two tables of tensors, compared to the bit.
struct StateDifference {
  int64_t tensors = 0;                 ///< that both have
  std::vector<std::string> only_one;   ///< tensors that one of them lacks, or has in another type or shape
  std::vector<std::string> different;  ///< in order
  double largest = 0;                  ///< absolute difference of two numbers of the first of them; NaN where one is
  std::string most_different;          ///< the tensor with the largest difference of all
  double most = 0;                     ///< that difference; infinite where a number is not finite
  bool is_equal() const { return only_one.empty() && different.empty(); }
};
StateDifference compare_states(const std::vector<model::NamedTensor>& a, const std::vector<model::NamedTensor>& b);

}  // namespace stoker::engine
