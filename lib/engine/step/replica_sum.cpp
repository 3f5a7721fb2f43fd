// SPDX-License-Identifier: Apache-2.0
#include "engine/step/replica_sum.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace stoker::engine {
namespace {

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

void copy_all(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

/// A gradient that is missing counts as zeros, also for its sign: -0 + 0 is 0, as it is where ranks add. Either may be
/// written to.
at::Tensor sum_of_gradients(at::Tensor left, at::Tensor right) {
  if (left.defined() && right.defined()) return left.add_(right);
  if (!left.defined()) left = std::move(right);
  return left.defined() ? left.add_(0) : left;
}

}  // namespace

ReplicaSum::ReplicaSum(Learner& learner, Lanes& lanes, int64_t replicas, Group* group)
    : learner_(learner),
      lanes_(lanes),
      group_(group),
      share_(group ? RankShare{group->rank(), group->size()} : RankShare{}),
      replicas_(replicas),
      sum_(replicas / share_.count),
      counts_(static_cast<size_t>(replicas)) {
  const at::NoGradGuard no_gradients;
  floats_before_ = copies_of(lanes.lane(0).floats);
  others_before_ = copies_of(lanes.lane(0).others);
  for (const at::Tensor& buffer : others_before_) others_of_first_.push_back(at::zeros_like(buffer));
}

void ReplicaSum::begin_replica(Lane& lane) const {
  const at::NoGradGuard no_gradients;
  copy_all(floats_before_, lane.floats);
  copy_all(others_before_, lane.others);
}

void ReplicaSum::end_replica(Lane& lane, int64_t replica, const ReplicaCount& count, bool more_follow) {
  const at::NoGradGuard no_gradients;
  counts_[static_cast<size_t>(replica)] = count;
  if (replica == 0) copy_all(lane.others, others_of_first_);
  const int64_t place = (replica - share_.rank) / share_.count;
  sum_.put(place, take_part(lane), more_follow ? sum_of : TreeSum<Part>::Add());
}

/// The gradients leave the lane, so that those of its next replica begin from nothing.
ReplicaSum::Part ReplicaSum::take_part(Lane& lane) const {
  Part part;
  for (const at::Tensor& parameter : lane.parameters) {
    part.gradients.push_back(parameter.grad());
    at::Tensor(parameter).mutable_grad().reset();
  }
  for (size_t i = 0; i < lane.floats.size(); ++i) part.changes.push_back(lane.floats[i].sub(floats_before_[i]));
  return part;
}

ReplicaSum::Part ReplicaSum::sum_of(Part left, Part right) {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < left.gradients.size(); ++i) {
    left.gradients[i] = sum_of_gradients(std::move(left.gradients[i]), std::move(right.gradients[i]));
  }
  for (size_t i = 0; i < left.changes.size(); ++i) left.changes[i].add_(right.changes[i]);
  return left;
}

/// What replicas have left, tensor by tensor on all lanes.
void ReplicaSum::add_up() {
  const size_t parameters = learner_.optimizer->parameters().size();
  total_.gradients.resize(parameters);
  total_.changes = sum_.fold([](const Part& part) { return part.changes; },
                             [](std::vector<at::Tensor> left, const std::vector<at::Tensor>& right) {
                               for (size_t i = 0; i < left.size(); ++i) left[i].add_(right[i]);
                               return left;
                             });
  lanes_.team().for_each(static_cast<int64_t>(parameters), [this](int64_t number) {
    const at::NoGradGuard no_gradients;
    const auto i = static_cast<size_t>(number);
    total_.gradients[i] = sum_.fold([i](const Part& part) { return part.gradients[i]; }, sum_of_gradients);
  });
}

bool ReplicaSum::agree(bool ran_out_of_memory) {
  const at::NoGradGuard no_gradients;
  const size_t parameters = learner_.optimizer->parameters().size();
  has_gradient_.assign(parameters, false);
  if (!ran_out_of_memory) {
    add_up();
    for (size_t i = 0; i < parameters; ++i) has_gradient_[i] = total_.gradients[i].defined();
  }
  if (group_ == nullptr) return ran_out_of_memory;
  // Doubles hold all of it exactly. Each row is written by one rank, so that adding zeros gives it to all.
  const size_t rows = counts_.size();
  std::vector<at::Tensor> others;  // are small: counts
  for (const at::Tensor& buffer : others_of_first_) others.push_back(buffer.to(at::kCPU, at::kDouble).flatten());
  const auto own_values = static_cast<int64_t>(1 + 3 * rows + parameters);
  others.insert(others.begin(), at::zeros({own_values}, at::kDouble));
  const at::Tensor table = at::cat(others);
  double* const values = table.data_ptr<double>();
  values[0] = ran_out_of_memory ? 1 : 0;
  for (size_t i = 0; i < rows; ++i) {
    values[1 + 3 * i] = counts_[i].loss_sum;
    values[2 + 3 * i] = counts_[i].score_sum;
    values[3 + 3 * i] = static_cast<double>(counts_[i].images);
  }
  for (size_t i = 0; i < parameters; ++i) values[1 + 3 * rows + i] = has_gradient_[i] ? 1 : 0;
  group_->sum({table});
  for (size_t i = 0; i < rows; ++i) {
    counts_[i] = {values[1 + 3 * i], values[2 + 3 * i], static_cast<int64_t>(values[3 + 3 * i])};
  }
  for (size_t i = 0; i < parameters; ++i) has_gradient_[i] = values[1 + 3 * rows + i] > 0;
  int64_t position = own_values;
  for (at::Tensor& buffer : others_of_first_) {
    buffer.copy_(table.narrow(0, position, buffer.numel()).view(buffer.sizes()));
    position += buffer.numel();
  }
  return values[0] > 0;
}

void ReplicaSum::finish() {
  const at::NoGradGuard no_gradients;
  const std::vector<optim::NamedParameter>& parameters = learner_.optimizer->parameters();
  if (group_) {
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!has_gradient_[i]) continue;
      if (!total_.gradients[i].defined()) total_.gradients[i] = at::zeros_like(parameters[i].tensor);
      tensors.push_back(total_.gradients[i]);
    }
    tensors.insert(tensors.end(), total_.changes.begin(), total_.changes.end());
    group_->sum(tensors);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor(parameters[i].tensor).mutable_grad() = total_.gradients[i];
  }
  for (size_t i = 0; i < floats_before_.size(); ++i) {
    const at::Tensor mean = total_.changes[i].div(static_cast<double>(replicas_));
    lanes_.lane(0).floats[i].copy_(floats_before_[i] + mean);
  }
  copy_all(others_of_first_, lanes_.lane(0).others);
}

}  // namespace stoker::engine
