// SPDX-License-Identifier: Apache-2.0
#include "engine/step/replica_sum.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

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

std::vector<at::Tensor> sum_parts_of(const Learner& learner, Lanes& lanes) {
  std::vector<at::Tensor> parts;
  for (const optim::NamedParameter& parameter : learner.optimizer->parameters()) parts.push_back(parameter.tensor);
  parts.insert(parts.end(), lanes.lane(0).floats.begin(), lanes.lane(0).floats.end());
  return parts;
}

ReplicaSum::ReplicaSum(Learner& learner, Lanes& lanes, int64_t replicas, const OtherRanks& others)
    : learner_(learner),
      lanes_(lanes),
      ranks_(others),
      share_(others.group ? RankShare{others.group->rank(), others.group->size()} : RankShare{}),
      replicas_(replicas),
      own_(own_replicas(replicas, share_)),
      first_late_(std::max<int64_t>(0, static_cast<int64_t>(own_.size()) - lanes.count())),
      parameters_(learner.optimizer->parameters().size()),
      sum_(replicas / share_.count),
      late_(own_.size() - static_cast<size_t>(first_late_)),
      missing_(parameters_ + lanes.lane(0).floats.size()),
      early_left_(first_late_),
      counts_(static_cast<size_t>(replicas)),
      has_gradient_(parameters_) {
  const at::NoGradGuard no_gradients;
  floats_before_ = copies_of(lanes.lane(0).floats);
  others_before_ = copies_of(lanes.lane(0).others);
  for (const at::Tensor& buffer : others_before_) others_of_first_.push_back(at::zeros_like(buffer));
  for (Part& part : late_) part.gradients.resize(parameters_);
  for (std::atomic<int64_t>& count : missing_) count = static_cast<int64_t>(own_.size());
  if (first_late_ == 0) put_late_parts();
  if (ranks_.sum) ranks_.sum->begin([this](size_t tensor) { return take(tensor); });
}

ReplicaSum::~ReplicaSum() {
  for (int64_t i = 0; i < lanes_.count(); ++i) {
    if (lanes_.lane(i).hooks) lanes_.lane(i).hooks->disarm();
  }
  if (ranks_.sum) ranks_.sum->abandon();
}

void ReplicaSum::begin_replica(Lane& lane) const {
  const at::NoGradGuard no_gradients;
  copy_all(floats_before_, lane.floats);
  copy_all(others_before_, lane.others);
}

void ReplicaSum::watch_backward(Lane& lane, int64_t turn) {
  if (!ranks_.sum || !lane.hooks || !is_late(turn)) return;
  Part& part = late_[static_cast<size_t>(turn - first_late_)];
  lane.hooks->arm([this, &lane, &part](size_t i) {
    if (part.gradients[i].defined()) return;
    part.gradients[i] = lane.parameters[i].grad();
    has(i);
  });
}

void ReplicaSum::end_replica(Lane& lane, int64_t turn, const ReplicaCount& count) {
  const at::NoGradGuard no_gradients;
  if (lane.hooks) lane.hooks->disarm();
  const int64_t replica = own_[static_cast<size_t>(turn)];
  counts_[static_cast<size_t>(replica)] = count;
  if (replica == 0) copy_all(lane.others, others_of_first_);
  if (is_late(turn)) return take_rest(lane, late_[static_cast<size_t>(turn - first_late_)], /*says_so=*/true);
  Part part;
  part.gradients.resize(parameters_);
  take_rest(lane, part, /*says_so=*/false);
  sum_.put(place_of(turn), std::move(part), sum_of);
  if (--early_left_ == 0) put_late_parts();  // no part is added by itself any more
  for (size_t i = 0; i < missing_.size(); ++i) has(i);
}

/// The gradients leave the lane, so that those of its next replica begin from nothing. Late ones that are not watched
/// have not left yet.
void ReplicaSum::take_rest(Lane& lane, Part& part, bool says_so) {
  for (size_t i = 0; i < parameters_; ++i) {
    at::Tensor parameter = lane.parameters[i];
    const bool is_taken = part.gradients[i].defined();
    if (!is_taken) part.gradients[i] = parameter.grad();
    parameter.mutable_grad().reset();
    if (says_so && !is_taken) has(i);
  }
  for (size_t i = 0; i < lane.floats.size(); ++i) {
    part.changes.push_back(lane.floats[i].sub(floats_before_[i]));
  }
  for (size_t i = parameters_; says_so && i < missing_.size(); ++i) has(i);
}

/// Where the parts that are late will be, so that the tree is complete.
void ReplicaSum::put_late_parts() {
  for (size_t i = 0; i < late_.size(); ++i) {
    Part part;
    part.late = static_cast<int64_t>(i);
    sum_.put(place_of(first_late_ + static_cast<int64_t>(i)), std::move(part));
  }
}

/// One more replica of this rank has it.
void ReplicaSum::has(size_t tensor) {
  if (--missing_[tensor] == 0 && ranks_.sum) ranks_.sum->ready(tensor);
}

ReplicaSum::Part ReplicaSum::sum_of(Part left, Part right) {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < left.gradients.size(); ++i) {
    left.gradients[i] = sum_of_gradients(std::move(left.gradients[i]), std::move(right.gradients[i]));
  }
  for (size_t i = 0; i < left.changes.size(); ++i) left.changes[i].add_(right.changes[i]);
  return left;
}

const ReplicaSum::Part& ReplicaSum::actual(const Part& part) const {
  return part.late < 0 ? part : late_[static_cast<size_t>(part.late)];
}

/// Of what the replicas of this rank have of a tensor. While a backward pass goes on none of it is written to: others
/// may still read the memory that a gradient lies on.
at::Tensor ReplicaSum::fold(size_t tensor) const {
  const bool is_gradient = tensor < parameters_, in_place = ranks_.sum == nullptr;
  return sum_.fold(
      [&](const Part& part) {
        const Part& there = actual(part);
        return is_gradient ? there.gradients[tensor] : there.changes[tensor - parameters_];
      },
      [in_place](at::Tensor left, at::Tensor right) {
        return in_place ? sum_of_gradients(std::move(left), std::move(right)) : sum_of_others(left, right);
      });
}

/// For the thread that exchanges.
at::Tensor ReplicaSum::take(size_t tensor) {
  const at::Tensor sum = fold(tensor);
  if (tensor < parameters_) has_gradient_[tensor] = sum.defined();
  return sum;
}

/// What replicas have left, tensor by tensor on all lanes.
void ReplicaSum::add_up() {
  total_.gradients.resize(parameters_);
  total_.changes.resize(missing_.size() - parameters_);
  lanes_.team().for_each(static_cast<int64_t>(missing_.size()), [this](int64_t number) {
    const at::NoGradGuard no_gradients;
    const auto i = static_cast<size_t>(number);
    (i < parameters_ ? total_.gradients[i] : total_.changes[i - parameters_]) = fold(i);
  });
}

bool ReplicaSum::agree(bool ran_out_of_memory) {
  const at::NoGradGuard no_gradients;
  if (!ranks_.group) {
    if (!ran_out_of_memory) add_up();
    return ran_out_of_memory;
  }
  if (ran_out_of_memory) ranks_.sum->fill_with_zeros();
  ranks_.sum->wait();
  // Doubles hold all of it exactly. Each row is written by one rank, so that adding zeros gives it to all.
  const size_t rows = counts_.size();
  std::vector<at::Tensor> others;  // are small: counts
  for (const at::Tensor& buffer : others_of_first_) others.push_back(buffer.to(at::kCPU, at::kDouble).flatten());
  const auto own_values = static_cast<int64_t>(1 + 3 * rows + parameters_);
  others.insert(others.begin(), at::zeros({own_values}, at::kDouble));
  const at::Tensor table = at::cat(others);
  double* const values = table.data_ptr<double>();
  values[0] = ran_out_of_memory ? 1 : 0;
  for (size_t i = 0; i < rows; ++i) {
    values[1 + 3 * i] = counts_[i].loss_sum;
    values[2 + 3 * i] = counts_[i].score_sum;
    values[3 + 3 * i] = static_cast<double>(counts_[i].images);
  }
  for (size_t i = 0; i < parameters_; ++i) values[1 + 3 * rows + i] = has_gradient_[i];
  ranks_.group->sum({table});
  for (size_t i = 0; i < rows; ++i) {
    counts_[i] = {values[1 + 3 * i], values[2 + 3 * i], static_cast<int64_t>(values[3 + 3 * i])};
  }
  for (size_t i = 0; i < parameters_; ++i) has_gradient_[i] = values[1 + 3 * rows + i] > 0;
  int64_t position = own_values;
  for (at::Tensor& buffer : others_of_first_) {
    buffer.copy_(table.narrow(0, position, buffer.numel()).view(buffer.sizes()));
    position += buffer.numel();
  }
  return values[0] > 0;
}

void ReplicaSum::finish() {
  const at::NoGradGuard no_gradients;
  if (ranks_.group) {
    total_.gradients.resize(parameters_);
    for (size_t i = 0; i < parameters_; ++i) {
      if (has_gradient_[i]) total_.gradients[i] = ranks_.sum->sum_of(i).to(learner_.device);
    }
    for (size_t i = parameters_; i < missing_.size(); ++i) {
      total_.changes.push_back(ranks_.sum->sum_of(i).to(learner_.device));
    }
  }
  const std::vector<optim::NamedParameter>& parameters = learner_.optimizer->parameters();
  for (size_t i = 0; i < parameters_; ++i) at::Tensor(parameters[i].tensor).mutable_grad() = total_.gradients[i];
  for (size_t i = 0; i < floats_before_.size(); ++i) {
    const at::Tensor mean = total_.changes[i].div(static_cast<double>(replicas_));
    lanes_.lane(0).floats[i].copy_(floats_before_[i] + mean);
  }
  copy_all(others_of_first_, lanes_.lane(0).others);
}

}  // namespace stoker::engine
