// SPDX-License-Identifier: Apache-2.0
#include "engine/step/replica_sum.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "model/buffers.h"

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

/// The sum of two, neither of which is written to.
at::Tensor sum_of_others(const at::Tensor& left, const at::Tensor& right) {
  if (left.defined() && right.defined()) return left.add(right);
  const at::Tensor& one = left.defined() ? left : right;
  return one.defined() ? one.add(0) : one;
}

}  // namespace

std::vector<at::Tensor> parameters_of(const Learner& learner) {
  std::vector<at::Tensor> tensors;
  for (const optim::NamedParameter& parameter : learner.optimizer->parameters()) tensors.push_back(parameter.tensor);
  return tensors;
}

std::vector<at::Tensor> sum_parts_of(const Learner& learner) {
  std::vector<at::Tensor> parts = parameters_of(learner);
  for (const at::Tensor& buffer : model::joined_buffers(*learner.model)) {
    if (buffer.is_floating_point()) parts.push_back(buffer);
  }
  return parts;
}

ReplicaSum::ReplicaSum(Learner& learner, int64_t replicas, const OtherRanks& others)
    : learner_(learner),
      ranks_(others),
      share_(share_of(others.group)),
      replicas_(replicas),
      own_(own_replicas(replicas, share_)),
      parameters_(parameters_of(learner)),
      sum_(replicas / share_.count),
      counts_(static_cast<size_t>(replicas)),
      has_gradient_(parameters_.size()) {
  const at::NoGradGuard no_gradients;
  for (const at::Tensor& buffer : model::joined_buffers(*learner.model)) {
    (buffer.is_floating_point() ? floats_ : others_).push_back(buffer);
  }
  floats_before_ = copies_of(floats_);
  others_before_ = copies_of(others_);
  for (const at::Tensor& buffer : others_before_) others_of_first_.push_back(at::zeros_like(buffer));
  last_.gradients.resize(parameters_.size());
  if (ranks_.sum) ranks_.sum->begin([this](size_t tensor) { return take(tensor); });
}

ReplicaSum::~ReplicaSum() {
  if (ranks_.hooks) ranks_.hooks->disarm();
  if (ranks_.sum) ranks_.sum->abandon();
}

void ReplicaSum::begin_replica(int64_t turn) {
  const at::NoGradGuard no_gradients;
  copy_all(floats_before_, floats_);
  copy_all(others_before_, others_);
  if (!is_last(turn)) return;
  Part place;  // no part is added by itself any more: the tree is complete
  place.is_last = true;
  sum_.put(place_of(turn), std::move(place));
}

void ReplicaSum::watch_backward(int64_t turn) {
  if (!ranks_.hooks || !is_last(turn)) return;
  ranks_.hooks->arm([this](size_t i) {
    if (last_.gradients[i].defined()) return;
    last_.gradients[i] = parameters_[i].grad();
    ranks_.sum->ready(i);
  });
}

void ReplicaSum::end_replica(int64_t turn, const ReplicaCount& count) {
  const at::NoGradGuard no_gradients;
  if (ranks_.hooks) ranks_.hooks->disarm();
  const int64_t replica = own_[static_cast<size_t>(turn)];
  counts_[static_cast<size_t>(replica)] = count;
  if (replica == 0) copy_all(others_, others_of_first_);
  if (is_last(turn)) return take_rest(last_, /*is_last=*/true);
  Part part;
  part.gradients.resize(parameters_.size());
  take_rest(part, /*is_last=*/false);
  sum_.put(place_of(turn), std::move(part), sum_of);
}

/// The gradients that watch_backward() has not taken.
void ReplicaSum::take_rest(Part& part, bool is_last) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor parameter = parameters_[i];
    const bool is_taken = part.gradients[i].defined();
    if (!is_taken) part.gradients[i] = parameter.grad();
    parameter.mutable_grad().reset();
    if (is_last && !is_taken && ranks_.sum) ranks_.sum->ready(i);
  }
  for (size_t i = 0; i < floats_.size(); ++i) part.changes.push_back(floats_[i].sub(floats_before_[i]));
  if (!is_last || !ranks_.sum) return;
  for (size_t i = 0; i < floats_.size(); ++i) ranks_.sum->ready(parameters_.size() + i);
}

ReplicaSum::Part ReplicaSum::sum_of(Part left, Part right) {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < left.gradients.size(); ++i) {
    left.gradients[i] = sum_of_gradients(std::move(left.gradients[i]), std::move(right.gradients[i]));
  }
  for (size_t i = 0; i < left.changes.size(); ++i) left.changes[i].add_(right.changes[i]);
  return left;
}

/// The sum of the replicas of this rank for a tensor. While a backward pass continues none of it is written to: others
/// may still read the memory that a gradient lies on.
at::Tensor ReplicaSum::fold(size_t tensor) const {
  const bool is_gradient = tensor < parameters_.size(), in_place = ranks_.sum == nullptr;
  return sum_.fold(
      [&](const Part& part) {
        const Part& there = part.is_last ? last_ : part;
        return is_gradient ? there.gradients[tensor] : there.changes[tensor - parameters_.size()];
      },
      [in_place](at::Tensor left, at::Tensor right) {
        return in_place ? sum_of_gradients(std::move(left), std::move(right)) : sum_of_others(left, right);
      });
}

/// For the thread that exchanges.
at::Tensor ReplicaSum::take(size_t tensor) {
  const at::Tensor sum = fold(tensor);
  if (tensor < parameters_.size()) has_gradient_[tensor] = sum.defined();
  return sum;
}

bool ReplicaSum::agree(bool ran_out_of_memory) {
  const at::NoGradGuard no_gradients;
  if (!ranks_.sum) return ran_out_of_memory;
  if (ran_out_of_memory) ranks_.sum->fill_with_zeros();
  ranks_.sum->wait();
  // Doubles hold all of it exactly. Each row is written by one rank, so that adding zeros gives it to all.
  const size_t rows = counts_.size();
  std::vector<at::Tensor> others;  // are small: counts
  for (const at::Tensor& buffer : others_of_first_) others.push_back(buffer.to(at::kCPU, at::kDouble).flatten());
  const auto own_values = static_cast<int64_t>(1 + 3 * rows + parameters_.size());
  others.insert(others.begin(), at::zeros({own_values}, at::kDouble));
  const at::Tensor table = at::cat(others);
  double* const values = table.data_ptr<double>();
  values[0] = ran_out_of_memory ? 1 : 0;
  for (size_t i = 0; i < rows; ++i) {
    values[1 + 3 * i] = counts_[i].loss_sum;
    values[2 + 3 * i] = counts_[i].score_sum;
    values[3 + 3 * i] = static_cast<double>(counts_[i].images);
  }
  for (size_t i = 0; i < parameters_.size(); ++i) values[1 + 3 * rows + i] = has_gradient_[i];
  ranks_.group.sum({table});
  for (size_t i = 0; i < rows; ++i) {
    counts_[i] = {values[1 + 3 * i], values[2 + 3 * i], static_cast<int64_t>(values[3 + 3 * i])};
  }
  for (size_t i = 0; i < parameters_.size(); ++i) has_gradient_[i] = values[1 + 3 * rows + i] > 0;
  int64_t position = own_values;
  for (at::Tensor& buffer : others_of_first_) {
    buffer.copy_(table.narrow(0, position, buffer.numel()).view(buffer.sizes()));
    position += buffer.numel();
  }
  return values[0] > 0;
}

void ReplicaSum::finish() {
  const at::NoGradGuard no_gradients;
  const auto sum_of_all = [&](size_t i) { return ranks_.sum ? ranks_.sum->sum_of(i).to(learner_.device) : fold(i); };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool has_none = ranks_.sum && !has_gradient_[i];
    parameters_[i].mutable_grad() = has_none ? at::Tensor() : sum_of_all(i);
  }
  for (size_t i = 0; i < floats_.size(); ++i) {
    const at::Tensor mean = sum_of_all(parameters_.size() + i).div(static_cast<double>(replicas_));
    floats_[i].copy_(floats_before_[i] + mean);
  }
  copy_all(others_of_first_, others_);
}

}  // namespace stoker::engine
