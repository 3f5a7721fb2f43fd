// SPDX-License-Identifier: Apache-2.0
// Gathers parameters, gradients and state, and hands them to the kernels for their device.

#include "optim/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "kernels/cpu.h"
#include "kernels/optimizer_step.h"
#include "optim/torch_kernels.h"

namespace stoker::optim {

namespace {

void on_torch_threads(int64_t count, int64_t grain, const kernels::RangeWork& work) {
  at::parallel_for(0, count, grain, work);
}

kernels::AdamStep adam_step_of(const AdamRule& rule, int64_t step) {
  const double correction1 = 1 - std::pow(rule.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(rule.beta2, static_cast<double>(step));
  kernels::AdamStep k{};
  k.beta1 = static_cast<float>(rule.beta1);
  k.one_minus_beta1 = static_cast<float>(1 - rule.beta1);
  k.beta2 = static_cast<float>(rule.beta2);
  k.one_minus_beta2 = static_cast<float>(1 - rule.beta2);
  k.eps = static_cast<float>(rule.eps);
  k.step_size = static_cast<float>(rule.lr / correction1);
  k.root_correction = static_cast<float>(std::sqrt(correction2));
  k.coupled_decay = rule.decoupled ? 0.F : static_cast<float>(rule.weight_decay);
  k.keep = rule.decoupled ? static_cast<float>(1 - rule.lr * rule.weight_decay) : 1.F;
  return k;
}

}  // namespace

bool same_layout(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  for (int64_t dim = 0; dim < a.dim(); ++dim) {
    // The stride of a dimension of size 1 is never used; convolutions of size 1x1 leave any value there.
    if (a.size(dim) > 1 && a.stride(dim) != b.stride(dim)) return false;
  }
  return true;
}

torch::Tensor with_layout_of(const torch::Tensor& like, const torch::Tensor& tensor) {
  // Kernels of LibTorch before 2.5 compare every stride, also those that are never used.
  if (same_layout(like, tensor)) {
    return like.strides() == tensor.strides() ? tensor : tensor.as_strided(like.sizes(), like.strides());
  }
  torch::Tensor copy = torch::empty_like(like);
  copy.copy_(tensor);
  return copy;
}

void one_pass_sgd(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& momentum,
                  const SgdRule& rule) {
  const kernels::SgdStep step{static_cast<float>(rule.lr), static_cast<float>(rule.momentum),
                              static_cast<float>(rule.weight_decay), rule.nesterov};
  kernels::sgd_step(parameter.data_ptr<float>(), gradient.data_ptr<float>(),
                    rule.momentum == 0 ? nullptr : momentum.data_ptr<float>(), parameter.numel(), step,
                    on_torch_threads);
}

void one_pass_adam(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& exp_avg,
                   const torch::Tensor& exp_avg_sq, const AdamRule& rule, int64_t step) {
  kernels::adam_step(parameter.data_ptr<float>(), gradient.data_ptr<float>(), exp_avg.data_ptr<float>(),
                     exp_avg_sq.data_ptr<float>(), parameter.numel(), adam_step_of(rule, step), on_torch_threads);
}

namespace {

using Kind = config::OptimizerKind;

/// One pass over memory on the CPU, fused kernels elsewhere; the others have foreach kernels alone.
bool has_kernels(Kind kind) { return kind == Kind::sgd || kind == Kind::adam || kind == Kind::adamw; }

/// The names of the states of a parameter in checkpoints; "": there is none.
struct StateNames {
  const char* first = "exp_avg.";
  const char* second = "exp_avg_sq.";
};

StateNames state_names(const NamedParameter& parameter, const config::ResolvedOptimOptions& options) {
  switch (options.opt) {
    case Kind::sgd: return {options.momentum != 0 ? "momentum." : "", ""};
    case Kind::rmsprop: return {options.momentum != 0 ? "momentum." : "", "square_avg."};
    case Kind::lion: return {"exp_avg.", ""};
    case Kind::muon: return parameter.is_hidden_matrix() ? StateNames{"momentum.", ""} : StateNames{};
    default: return {};
  }
}

void check_parameter(const NamedParameter& parameter, const torch::Device& device) {
  const torch::Tensor& tensor = parameter.tensor;
  if (tensor.scalar_type() != torch::kFloat32 || tensor.device() != device || !tensor.is_non_overlapping_and_dense()) {
    throw core::Error(core::ErrorKind::bug,
                      core::format("parameter '{}' is not a dense float32 tensor on {}", parameter.name, device.str()));
  }
}

}  // namespace

int states_of(const NamedParameter& parameter, const config::ResolvedOptimOptions& options) {
  const StateNames names = state_names(parameter, options);
  return (*names.first != 0 ? 1 : 0) + (*names.second != 0 ? 1 : 0);
}

Optimizer::Optimizer(std::vector<NamedParameter> parameters, const config::ResolvedOptimOptions& options)
    : options_(options),
      parameters_(std::move(parameters)),
      first_(parameters_.size()),
      second_(parameters_.size()),
      begun_at_(parameters_.size()) {
  if (parameters_.empty()) throw core::Error(core::ErrorKind::bug, "the optimizer was given no parameters");
  for (const NamedParameter& parameter : parameters_) check_parameter(parameter, parameters_[0].tensor.device());
}

std::vector<torch::Tensor> Optimizer::gradients() const {
  std::vector<torch::Tensor> gradients;
  for (const NamedParameter& parameter : parameters_) {
    if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad());
  }
  return gradients;
}

void Optimizer::step(const UpdateRates& rates, const torch::Tensor& found_inf) {
  const bool may_lack_momentum = options_.opt == Kind::sgd || options_.opt == Kind::rmsprop;
  if (rates.momentum && may_lack_momentum && options_.momentum == 0) {
    throw core::Error(core::ErrorKind::bug, "a schedule moves the momentum of an optimizer that has none");
  }
  torch::NoGradGuard no_grad;
  const bool on_device = is_fused();
  if (found_inf.defined() && !on_device && found_inf.item<float>() != 0) return;
  ++steps_;
  for (const Group& group : groups()) {
    takes_device_kernels(parameters_[0].tensor) ? step_on_device(group, rates, found_inf) : step_on_cpu(group, rates);
  }
  if (found_inf.defined() && on_device) skipped_ = skipped_.defined() ? skipped_ + found_inf : found_inf.clone();
}

void Optimizer::zero_grad() {
  for (NamedParameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

std::vector<NamedState> Optimizer::state() {
  std::vector<NamedState> state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    create_state(i);
    const StateNames names = state_names(parameters_[i], options_);
    if (first_[i].defined()) state.push_back({names.first + parameters_[i].name, first_[i]});
    if (second_[i].defined()) state.push_back({names.second + parameters_[i].name, second_[i]});
  }
  return state;
}

int64_t Optimizer::steps_taken() const {
  return skipped_.defined() ? steps_ - static_cast<int64_t>(skipped_.item<float>()) : steps_;
}

void Optimizer::set_steps_taken(int64_t steps, const std::map<std::string, int64_t>& begun_at) {
  steps_ = steps;
  skipped_.reset();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto found = begun_at.find(parameters_[i].name);
    begun_at_[i] = found == begun_at.end() ? 0 : std::min(found->second, steps);
  }
}

void Optimizer::thaw() {
  const int64_t steps = steps_taken();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].thaws) begun_at_[i] = steps;
  }
}

std::map<std::string, int64_t> Optimizer::begun_at() const {
  std::map<std::string, int64_t> later;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (begun_at_[i] > 0 && options_.opt != Kind::sgd) later[parameters_[i].name] = begun_at_[i];
  }
  return later;
}

void Optimizer::create_state(size_t index) {
  const torch::Tensor& parameter = parameters_[index].tensor;
  const StateNames names = state_names(parameters_[index], options_);
  const auto create = [&parameter](torch::Tensor& slot) {
    torch::NoGradGuard no_grad;
    slot = slot.defined() ? with_layout_of(parameter, slot) : torch::zeros_like(parameter).detach();
  };
  if (*names.first != 0) create(first_[index]);
  if (*names.second != 0) create(second_[index]);
}

std::vector<Optimizer::Group> Optimizer::groups() {
  std::vector<Group> groups;
  const auto group_of = [&groups](double weight_decay, double lr_scale, int64_t begun_at, bool is_matrix) -> Group& {
    for (Group& group : groups) {
      const bool is_same = group.weight_decay == weight_decay && group.lr_scale == lr_scale;
      if (is_same && group.begun_at == begun_at && group.is_matrix == is_matrix) return group;
    }
    groups.push_back({weight_decay, lr_scale, begun_at, is_matrix, {}, {}, {}, {}});
    return groups.back();
  };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& parameter = parameters_[i].tensor;
    if (!parameter.grad().defined()) continue;
    create_state(i);
    Group& group = group_of(decays(i) ? options_.weight_decay : 0, parameters_[i].lr_scale, begun_at_[i], is_matrix(i));
    group.parameters.push_back(parameter);
    group.gradients.push_back(with_layout_of(parameter, parameter.grad()));
    if (first_[i].defined()) group.first.push_back(first_[i]);
    if (second_[i].defined()) group.second.push_back(second_[i]);
  }
  return groups;
}

bool Optimizer::decays(size_t index) const {
  const NamedParameter& parameter = parameters_[index];
  return (parameter.tensor.dim() > 1 && parameter.decays) || options_.decay_norm_and_bias;
}

bool Optimizer::is_matrix(size_t index) const {
  if (options_.opt == Kind::lamb) return decays(index);
  return options_.opt == Kind::muon && parameters_[index].is_hidden_matrix();
}

SgdRule Optimizer::sgd_rule(const Group& group, const UpdateRates& rates) const {
  return {rates.lr * group.lr_scale, rates.momentum.value_or(options_.momentum), options_.nesterov, group.weight_decay};
}

AdamRule Optimizer::adam_rule(const Group& group, const UpdateRates& rates) const {
  return {rates.lr * group.lr_scale,
          rates.momentum.value_or(options_.beta1),
          options_.beta2,
          options_.eps,
          group.weight_decay,
          options_.opt == Kind::adamw || options_.opt == Kind::muon};
}

void Optimizer::step_by_foreach(const KernelLists& lists, const Group& group, const UpdateRates& rates) const {
  const int64_t steps = steps_ - group.begun_at;
  switch (options_.opt) {
    case Kind::sgd: return foreach_sgd(lists, sgd_rule(group, rates));
    case Kind::rmsprop: {
      const SgdRule rule = sgd_rule(group, rates);
      return foreach_rmsprop(lists, {rule.lr, options_.beta2, options_.eps, rule.momentum, rule.weight_decay});
    }
    case Kind::nadam: return foreach_nadam(lists, adam_rule(group, rates), steps);
    case Kind::lion: return foreach_lion(lists, adam_rule(group, rates));
    case Kind::lamb: return foreach_lamb(lists, adam_rule(group, rates), steps, group.is_matrix);
    case Kind::muon:
      if (group.is_matrix) return foreach_muon(lists, sgd_rule(group, rates));
      [[fallthrough]];
    case Kind::adam:
    case Kind::adamw: return foreach_adam(lists, adam_rule(group, rates), steps);
  }
}

void Optimizer::step_on_cpu(const Group& group, const UpdateRates& rates) const {
  if (!has_kernels(options_.opt)) {  // one by one: what is computed on the way is as large as one parameter
    RECORD_USER_SCOPE("stoker::foreach_step");
    const auto entry = [](const std::vector<torch::Tensor>& list, size_t i) {
      return list.empty() ? list : std::vector<torch::Tensor>{list[i]};
    };
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      step_by_foreach({{group.parameters[i]}, {group.gradients[i]}, entry(group.first, i), entry(group.second, i)},
                      group, rates);
    }
    return;
  }
  if (plain_ || !kernels::has_optimizer_step()) {
    return step_by_foreach({group.parameters, group.gradients, group.first, group.second}, group, rates);
  }
  const bool is_sgd = options_.opt == Kind::sgd;
  RECORD_USER_SCOPE(is_sgd ? "stoker::sgd_step" : "stoker::adam_step");  // for profilers
  const SgdRule sgd = sgd_rule(group, rates);
  const AdamRule adam = adam_rule(group, rates);
  for (size_t i = 0; i < group.parameters.size(); ++i) {
    if (is_sgd) {
      one_pass_sgd(group.parameters[i], group.gradients[i], group.first.empty() ? torch::Tensor() : group.first[i],
                   sgd);
    } else {
      one_pass_adam(group.parameters[i], group.gradients[i], group.first[i], group.second[i], adam,
                    steps_ - group.begun_at);
    }
  }
}

void Optimizer::step_on_device(const Group& group, const UpdateRates& rates, const torch::Tensor& found_inf) const {
  const KernelLists lists{group.parameters, group.gradients, group.first, group.second};
  if (!has_kernels(options_.opt)) return step_by_foreach(lists, group, rates);
  if (options_.opt == Kind::sgd) {
    const SgdRule rule = sgd_rule(group, rates);
    is_fused() ? fused_sgd(lists, rule, found_inf) : foreach_sgd(lists, rule);
    return;
  }
  const int64_t steps = steps_ - group.begun_at;
  if (plain_ || group.parameters[0].is_cpu()) return foreach_adam(lists, adam_rule(group, rates), steps);
  const auto like = torch::TensorOptions(group.parameters[0].device()).dtype(torch::kFloat32);
  torch::Tensor step = torch::full({1}, static_cast<double>(steps), like);
  if (skipped_.defined()) step.sub_(skipped_);
  fused_adam(lists, adam_rule(group, rates), step, found_inf);
}

bool Optimizer::is_fused() const {
  const torch::Tensor& any = parameters_[0].tensor;
  if (plain_ || !has_kernels(options_.opt) || !takes_device_kernels(any)) return false;
  return options_.opt == Kind::sgd ? has_fused_sgd() : !any.is_cpu();
}

}  // namespace stoker::optim
