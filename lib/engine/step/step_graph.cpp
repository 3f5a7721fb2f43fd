// SPDX-License-Identifier: Apache-2.0
#include "engine/step/step_graph.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <exception>

#include "core/error.h"
#include "core/log.h"
#include "engine/device/device.h"

namespace stoker::engine {
namespace {

/// After this number of batches of other kinds in a row, the recorded kind was the wrong one.
constexpr int64_t kOthersInRow = 64;

void add_layout(const torch::Tensor& tensor, std::vector<int64_t>& kind) {
  if (!tensor.defined()) {
    kind.push_back(-1);
    return;
  }
  kind.push_back(static_cast<int64_t>(tensor.scalar_type()));
  kind.insert(kind.end(), tensor.sizes().begin(), tensor.sizes().end());
  kind.insert(kind.end(), tensor.strides().begin(), tensor.strides().end());
}

torch::Tensor buffer_like(const torch::Tensor& tensor) {
  return tensor.defined() ? at::empty_like(tensor) : torch::Tensor();
}

void copy_into(torch::Tensor& buffer, const torch::Tensor& from) {
  if (buffer.defined()) buffer.copy_(from, /*non_blocking=*/true);
}

/// Gradients of `learner`'s network by parameter.
torch::Tensor& gradient_of(const optim::NamedParameter& parameter) { return parameter.tensor.mutable_grad(); }

}  // namespace

PassResult StepGraph::compute(const MicroBatch& input, const Compute& compute) {
  if (has_given_up_) return compute(input);
  const torch::NoGradGuard no_gradients;  // of copies; what is computed enables them itself
  const auto directly = [&] {
    const torch::AutoGradMode with_gradients(true);
    return compute(input);
  };
  const Kind kind = kind_of(input);
  if (record_ && kind != kind_ && ++others_in_row_ < kOthersInRow) return directly();
  if (record_ && (kind != kind_ || has_moved())) forget();
  others_in_row_ = 0;
  if (!record_) {
    if (kind != kind_) warm_ups_ = 0;
    kind_ = kind;
    if (warm_ups_ < kWarmUps) {
      ++warm_ups_;
      PassResult result;
      runner_.warm_up([&] { result = directly(); });
      return result;
    }
    if (!can_record(input, compute)) return directly();
  }
  return replay(input);
}

void StepGraph::forget() {
  record_.reset();
  input_ = {};
  result_ = {};
  gradients_.clear();
  places_.clear();
  kind_.clear();
  warm_ups_ = others_in_row_ = 0;
}

StepGraph::Kind StepGraph::kind_of(const MicroBatch& input) {
  Kind kind = {input.planned_images, input.is_mixed() ? 1 : 0};
  for (const torch::Tensor& tensor :
       {input.batch.images, input.batch.labels, input.batch.targets, input.partners.labels, input.partners.targets}) {
    add_layout(tensor, kind);
  }
  return kind;
}

/// Records; false where that is not possible, then all is as before.
bool StepGraph::can_record(const MicroBatch& input, const Compute& compute) {
  const std::vector<torch::Tensor> parked = park_gradients();
  std::string cause;
  std::exception_ptr lack_of_memory;
  try {
    record(input, compute);
  } catch (const std::exception& error) {
    cause = short_text_of(error);
    if (is_out_of_memory(error, free_memory_share(learner_.device))) lack_of_memory = std::current_exception();
  }
  restore_gradients(parked);
  if (record_) return true;
  forget();
  release_unused_memory(learner_.device);
  has_given_up_ = true;
  if (is_required_ && lack_of_memory) std::rethrow_exception(lack_of_memory);
  if (is_required_) {
    throw core::Error(core::ErrorKind::config, "graphs on is not possible: an update cannot be recorded: " + cause,
                      "leave --graphs out, or set --graphs off");
  }
  core::log_warning("updates cannot be recorded as a graph, and are computed without one: {}", cause);
  return false;
}

void StepGraph::record(const MicroBatch& input, const Compute& compute) {
  input_.batch.images = buffer_like(input.batch.images);
  input_.batch.labels = buffer_like(input.batch.labels);
  input_.batch.targets = buffer_like(input.batch.targets);
  input_.batch.planned_images = input.batch.planned_images;
  input_.partners.labels = buffer_like(input.partners.labels);
  input_.partners.targets = buffer_like(input.partners.targets);
  input_.lambda = input.lambda;
  input_.planned_images = input.planned_images;
  if (input.is_mixed()) input_.shares = at::empty({2}, torch::TensorOptions(learner_.device).dtype(at::kFloat));
  take_input(input);
  std::unique_ptr<RecordedWork> record = runner_.record([&] {
    const torch::AutoGradMode with_gradients(true);
    const PassResult result = compute(input_);
    result_ = {result.outputs.detach(), result.loss_sum.detach()};
  });
  gradients_.clear();
  for (const optim::NamedParameter& parameter : learner_.optimizer->parameters()) {
    gradients_.push_back(gradient_of(parameter));
    places_.push_back({parameter.tensor, parameter.tensor.data_ptr()});
  }
  for (const torch::Tensor& buffer : learner_.model->buffers()) places_.push_back({buffer, buffer.data_ptr()});
  record_ = std::move(record);
}

PassResult StepGraph::replay(const MicroBatch& input) {
  take_input(input);
  const std::vector<torch::Tensor> parked = park_gradients();
  record_->replay();
  ++replays_;
  std::vector<torch::Tensor> sums, added;
  const std::vector<optim::NamedParameter>& parameters = learner_.optimizer->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    torch::Tensor& gradient = gradient_of(parameters[i]);
    gradient = parked[i].defined() ? parked[i] : gradients_[i];
    if (!parked[i].defined() || !gradients_[i].defined()) continue;
    sums.push_back(parked[i]);
    added.push_back(gradients_[i]);
  }
  if (!sums.empty()) at::_foreach_add_(sums, added);
  return result_;
}

void StepGraph::take_input(const MicroBatch& input) {
  copy_into(input_.batch.images, input.batch.images);
  copy_into(input_.batch.labels, input.batch.labels);
  copy_into(input_.batch.targets, input.batch.targets);
  if (!input.is_mixed()) return;
  copy_into(input_.partners.labels, input.partners.labels);
  copy_into(input_.partners.targets, input.partners.targets);
  input_.shares[0].fill_(input.lambda);
  input_.shares[1].fill_(1 - input.lambda);
}

/// Takes the gradients of batches before this one out of the way of those that come.
std::vector<torch::Tensor> StepGraph::park_gradients() {
  std::vector<torch::Tensor> parked;
  for (const optim::NamedParameter& parameter : learner_.optimizer->parameters()) {
    torch::Tensor& gradient = gradient_of(parameter);
    const size_t i = parked.size();
    const bool is_own =
        gradient.defined() && i < gradients_.size() && gradients_[i].defined() && gradient.is_alias_of(gradients_[i]);
    parked.push_back(is_own ? gradient.clone() : gradient);
    gradient.reset();
  }
  return parked;
}

void StepGraph::restore_gradients(const std::vector<torch::Tensor>& parked) {
  const std::vector<optim::NamedParameter>& parameters = learner_.optimizer->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) gradient_of(parameters[i]) = parked[i];
}

bool StepGraph::has_moved() const {
  for (const Place& place : places_) {
    if (place.tensor.data_ptr() != place.memory) return true;
  }
  return false;
}

}  // namespace stoker::engine
