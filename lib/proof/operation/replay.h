// SPDX-License-Identifier: Apache-2.0
// One operation computed twice on random numbers and compared with plain loops.
#pragma once

#include <ATen/core/stack.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "proof/operation/operation.h"
#include "proof/rules/comparison.h"

namespace stoker::proof {

/// The result of computing one operation.
struct Finding {
  bool is_right = true;
  std::string fault{};     ///< what is wrong, by how much: "output: 12 of 512 elements wrong, ..."; empty: nothing
  double worst_ratio = 0;  ///< largest ratio of the errors to what rounding may do
  double seconds = 0;      ///< duration of the second call
};

struct ReplaySettings {
  uint64_t seed = 0;
  bool same_bits = true;                  ///< both calls must give the same bits
  bool compares_all = false;              ///< every element instead of a sample
  std::function<void()> on_step = [] {};  ///< called when a part of the work is done
};

/// Throws what LibTorch throws.
Finding replayed(const Operation& operation, const ReplaySettings& settings);

// Arguments of an operation with random numbers in them.

/// Tensors of `operation` on its device, filled with uniform numbers of [-1, 1) that `seed` decides, NaN behind the
/// last; of integer types with zeros. All else as it is.
torch::jit::Stack with_noise(const Operation& operation, uint64_t seed);

}  // namespace stoker::proof
