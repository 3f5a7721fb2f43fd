// SPDX-License-Identifier: Apache-2.0
#include "proof/operation/noise.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <random>

namespace stoker::proof {
namespace {

// Drawing each number anew would take longer than the operations. A prime, so that images of no size repeat the pool.
constexpr int64_t kPool = 4'194'301;

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
  at::Tensor memory = at::empty({extent}, shape.options().device(at::kCPU));
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
