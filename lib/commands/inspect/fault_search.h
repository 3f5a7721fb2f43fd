// SPDX-License-Identifier: Apache-2.0
// Where a divergence or a spike of a run began, from its updates as they were watched. Computes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/inspect/watched_update.h"

namespace stoker::train {

/// What is to blame.
struct Blame {
  enum class Kind { nothing, spike, divergence };
  Kind kind = Kind::nothing;
  WatchedUpdate began;                ///< the update in which it began
  int64_t not_finite_at = 0;          ///< divergence: the update whose numbers are the first that are not finite
  std::string cause;                  ///< in words
  std::vector<SampleRecord> samples;  ///< that stand out in it, the worst first; empty: none does
  std::string layer;                  ///< in which it shows first; empty: unknown
  bool by_skipping = false;           ///< the run ended since float16 gradients overflowed in every update
};

/// From updates in order. A spike is a loss or a gradient norm far above the median of the updates before it. What a
/// loss scaler skipped is none, but for a run that ends_by_skipping() with `limits`.
Blame find_fault(const std::vector<WatchedUpdate>& watched, const engine::SkipLimits& limits = {});

}  // namespace stoker::train
