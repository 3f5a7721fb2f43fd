// SPDX-License-Identifier: Apache-2.0
// Weights and images by formula, the same as scripts/parity/resnet_golden.py makes: golden numbers need no
// files.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "core/format.h"
#include "model/image_model.h"

namespace stoker::model {

/// float32 [count] in [-1, 1): a multiply-xorshift hash of the element number and the stream number.
inline torch::Tensor uniform_numbers(int64_t count, uint32_t stream) {
  torch::Tensor values = torch::empty({count});
  auto* out = values.data_ptr<float>();
  for (int64_t i = 0; i < count; ++i) {
    uint32_t h = static_cast<uint32_t>(i) * 2654435761U + stream * 2246822519U;
    h ^= h >> 15;
    h *= 2246822519U;
    h ^= h >> 13;
    h *= 3266489917U;
    h ^= h >> 16;
    out[i] = static_cast<float>(h >> 8) / static_cast<float>(1 << 23) - 1.0F;
  }
  return values;
}

inline void fill_by_formula(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  uint32_t stream = 0;
  for (const NamedTensor& item : state_of(module)) {
    const uint32_t own_stream = stream++;
    if (!item.tensor.is_floating_point()) continue;
    torch::Tensor values = uniform_numbers(item.tensor.numel(), own_stream).reshape(item.tensor.sizes());
    if (item.tensor.dim() == 4) {
      values *= std::sqrt(6.0 / static_cast<double>(item.tensor[0].numel()));
    } else if (item.tensor.dim() == 2) {
      values *= std::sqrt(3.0 / static_cast<double>(item.tensor.size(1)));
    } else if (core::ends_with(item.name, "running_var") || core::ends_with(item.name, "weight")) {
      values = 1 + values / 4;
    } else {
      values = values / 8;
    }
    torch::Tensor(item.tensor).copy_(values);
  }
}

/// 64-bit FNV-1a of lines "name 64,3,7,7".
inline uint64_t names_hash(const torch::nn::Module& module) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const NamedTensor& item : state_of(module)) {
    std::string line = item.name + " ";
    for (int64_t dim = 0; dim < item.tensor.dim(); ++dim) {
      line += (dim > 0 ? "," : "") + std::to_string(item.tensor.size(dim));
    }
    for (const char letter : line + "\n") hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return hash;
}

/// True when every number is within `relative` of the golden one (of the largest golden one for small
/// numbers).
inline bool near_golden(const torch::Tensor& values, const std::vector<double>& golden, double relative) {
  const torch::Tensor expected = torch::tensor(golden, torch::kFloat64);
  const torch::Tensor found = values.detach().to(torch::kFloat64).flatten();
  if (found.numel() != expected.numel()) return false;
  const double error = (found - expected).abs().max().item<double>();
  return error <= relative * expected.abs().max().item<double>();
}

}  // namespace stoker::model
