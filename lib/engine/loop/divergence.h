// SPDX-License-Identifier: Apache-2.0
// The errors for a loss that is no longer finite, and for float16 gradients that never are.
#pragma once

#include <cmath>

#include "core/format.h"
#include "engine/checkpoint/checkpoint.h"

namespace stoker::engine {

/// `loss`: NaN or infinite, seen at `at`. Names the last good checkpoint.
inline core::Error diverged_loss(double loss, const RunProgress& at, const CheckpointFiles& files) {
  const char* const value = std::isnan(loss) ? "NaN" : loss > 0 ? "infinite" : "minus infinity";  // no "-nan"
  return diverged_error(
      core::format("the loss is {} at update {} (learning rate {:g})", value, at.updates, at.learning_rate), files);
}

/// Where a run that trains on nothing ends.
struct SkipLimits {
  double min_scale = 0;     ///< of the loss
  int64_t max_skipped = 0;  ///< updates in a row; 0: no limit
};

/// Throws Error{diverged} when updates are skipped beyond a limit. Else it waits for no save that is under way.
inline void require_learning(const optim::LossScale& seen, const SkipLimits& limits, const RunProgress& at,
                             Checkpoints& checkpoints) {
  // At a scale below 1 gradients overflow by themselves.
  const std::string without_scale = "train with --amp bfloat16 or --no-amp, or lower --lr";
  if (limits.max_skipped > 0 && seen.skipped_in_row >= limits.max_skipped) {
    throw diverged_error(core::format("float16 gradients overflowed in {} updates in a row, up to update {} (loss "
                                      "scale {:g}); --max-skipped is {}",
                                      seen.skipped_in_row, at.updates, seen.scale, limits.max_skipped),
                         checkpoints.files(),
                         seen.scale > 1
                             ? "lower --loss-scale, or raise --max-skipped, so that the scale can fall further"
                             : without_scale);
  }
  if (seen.scale < limits.min_scale) {
    throw diverged_error(core::format("float16 gradients overflow at update {} although the loss scale is {:g}; "
                                      "--min-scale is {:g}",
                                      at.updates, seen.scale, limits.min_scale),
                         checkpoints.files(), seen.scale > 1 ? "lower --min-scale" : without_scale);
  }
}

}  // namespace stoker::engine
