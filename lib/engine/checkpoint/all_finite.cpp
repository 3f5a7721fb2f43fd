// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/all_finite.h"

#include <cstdint>
#include <cstring>

namespace stoker::engine {
namespace {

/// Of a float tensor whose numbers lie one behind the other: those with an exponent of ones are inf or NaN. By the
/// calling thread alone: LibTorch would make it a team of threads, beside the one that trains.
bool all_finite_numbers(const float* numbers, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, numbers + i, sizeof bits);
    found |= static_cast<uint32_t>((bits & kExponent) == kExponent);
  }
  return found == 0;
}

}  // namespace

bool all_finite(const torch::Tensor& tensor) {
  if (tensor.is_cpu() && tensor.scalar_type() == torch::kFloat32 && tensor.is_non_overlapping_and_dense()) {
    return all_finite_numbers(tensor.data_ptr<float>(), tensor.numel());
  }
  return torch::isfinite(tensor).all().item<bool>();
}

}  // namespace stoker::engine
