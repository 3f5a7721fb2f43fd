// SPDX-License-Identifier: Apache-2.0
// The error for a loss that is no longer finite.
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

}  // namespace stoker::engine
