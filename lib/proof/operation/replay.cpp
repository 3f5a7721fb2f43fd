// SPDX-License-Identifier: Apache-2.0
#include "proof/operation/replay.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "core/format.h"
#include "engine/device/device.h"
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

/// Arguments that the operator changes are unchanged in the copy.
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
    finding.fault = "not reproducible: a second computation gives other bits";
  }
  return finding;
}

namespace {

// Drawing each number anew would take longer than the operations. A prime, so that images of no size repeat the pool.
constexpr int64_t kPool = 4'194'301;
// NaN behind the last element of each tensor: a library that reads on, and multiplies by zero, otherwise computes right
// or wrong by chance of what lies there. oneDNN 3.7 does so in channels-last bfloat16 convolutions of many, oddly many
// channels.
constexpr int64_t kBehind = 1024;

const at::Tensor& pool_of(at::ScalarType type) {
  static std::map<at::ScalarType, at::Tensor> pools;
  at::Tensor& pool = pools[type];
  if (!pool.defined()) {
    std::mt19937_64 random(1);
    at::Tensor numbers = at::empty({kPool}, at::kFloat);
    float* const data = numbers.data_ptr<float>();
    for (int64_t i = 0; i < kPool; ++i) data[i] = static_cast<float>(static_cast<int64_t>(random()) * 0x1p-63);
    pool = numbers.to(type);
  }
  return pool;
}

/// Elements of the memory that a tensor lies in: fewer than its own where it is expanded.
int64_t extent_of(const at::Tensor& tensor) {
  int64_t extent = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i) extent += (tensor.size(i) - 1) * tensor.stride(i);
  return tensor.numel() == 0 ? 0 : extent;
}

at::Tensor noise_like(const at::Tensor& shape, at::DeviceType device, uint64_t seed) {
  const int64_t extent = extent_of(shape);
  if (!at::isFloatingType(shape.scalar_type())) {
    return at::zeros({extent}, shape.options().device(device)).as_strided(shape.sizes(), shape.strides());
  }
  const at::Tensor& pool = pool_of(shape.scalar_type());
  at::Tensor memory = at::empty({extent + kBehind}, shape.options().device(at::kCPU));
  memory.narrow(0, extent, kBehind).fill_(std::numeric_limits<float>::quiet_NaN());
  const int64_t start = static_cast<int64_t>(seed % static_cast<uint64_t>(kPool));
  for (int64_t done = 0, from = start; done < extent; from = 0) {
    const int64_t count = std::min(extent - done, kPool - from);
    memory.narrow(0, done, count).copy_(pool.narrow(0, from, count));
    done += count;
  }
  return memory.to(device).as_strided(shape.sizes(), shape.strides());
}

}  // namespace

torch::jit::Stack with_noise(const Operation& operation, uint64_t seed) {
  torch::jit::Stack stack;
  std::mt19937_64 random(seed);
  for (const c10::IValue& argument : operation.arguments) {
    const bool is_tensor = argument.isTensor() && argument.toTensor().defined();
    stack.push_back(is_tensor ? c10::IValue(noise_like(argument.toTensor(), operation.device, random())) : argument);
  }
  return stack;
}

}  // namespace stoker::proof
