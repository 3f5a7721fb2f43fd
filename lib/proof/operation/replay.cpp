// SPDX-License-Identifier: Apache-2.0
#include "proof/operation/replay.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/format.h"
#include "engine/device/device.h"
#include "proof/operation/noise.h"
#include "proof/rules/rules.h"

namespace stoker::proof {
namespace {

using torch::jit::Stack;

Stack called(const Operation& operation, const Stack& arguments) {
  const c10::OperatorHandle handle =
      c10::Dispatcher::singleton().findSchemaOrThrow(operation.name.c_str(), operation.overload.c_str());
  Stack stack = arguments;
  handle.callBoxed(&stack);
  return stack;
}

/// What the operator changes of its arguments is as before in the copy.
Stack copied(const Stack& arguments) {
  Stack copies;
  for (const c10::IValue& argument : arguments) {
    const bool is_small = argument.isTensor() && argument.toTensor().defined() && argument.toTensor().dim() == 1;
    copies.push_back(is_small ? c10::IValue(argument.toTensor().clone()) : argument);
  }
  return copies;
}

bool has_same_bits(const at::Tensor& left, const at::Tensor& right) {
  if (!left.defined() || !right.defined()) return left.defined() == right.defined();
  if (left.sizes() != right.sizes() || left.scalar_type() != right.scalar_type()) return false;
  const at::Tensor a = left.cpu().contiguous(), b = right.cpu().contiguous();
  return std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

bool have_same_bits(const Stack& left, const Stack& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const c10::IValue& a, const c10::IValue& b) {
                      return !a.isTensor() || !b.isTensor() || has_same_bits(a.toTensor(), b.toTensor());
                    });
}

}  // namespace

Finding replayed(const Operation& operation, const ReplaySettings& settings) {
  const torch::NoGradGuard no_gradients;
  const Rule* const rule = rule_of(operation.name);
  Stack arguments = with_noise(operation, settings.seed);
  if (rule->prepare) rule->prepare(arguments);
  settings.on_step();
  const Stack first = called(operation, copied(arguments));
  engine::synchronize(operation.device);
  settings.on_step();
  const auto begin = std::chrono::steady_clock::now();
  const Stack second = called(operation, copied(arguments));
  engine::synchronize(operation.device);
  Finding finding;
  finding.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  settings.on_step();
  Comparison comparison(settings.seed, settings.compares_all);
  rule->compare(arguments, first, comparison);
  for (const Compared& compared : comparison.results()) {
    finding.worst_ratio = std::max(finding.worst_ratio, compared.worst_ratio);
    if (compared.is_right()) continue;
    finding.is_right = false;
    finding.fault += (finding.fault.empty() ? "" : "; ") + compared.text();
  }
  if (finding.is_right && settings.same_bits && !have_same_bits(first, second)) {
    finding.is_right = false;
    finding.fault = "other bits when it is computed again";
  }
  return finding;
}

}  // namespace stoker::proof
