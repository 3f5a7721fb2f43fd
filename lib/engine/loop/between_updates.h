// SPDX-License-Identifier: Apache-2.0
// The one slot in which others than the trainer may use the learner: between two updates, called while training, for a
// limited time.
#pragma once

#include "engine/run/findings.h"
#include "engine/step/learner.h"

namespace stoker::engine {

class BetweenUpdates {
 public:
  virtual ~BetweenUpdates() = default;
  /// Here it does nothing. Called on the training thread. May run the learner on its own input, and leaves it as it
  /// was: weights, buffers, gradients, random state, training mode, number of threads. Begins nothing once
  /// seconds_allowed is spent. A stop request ends it early, by returning or by core::StopRequested: the trainer sees
  /// the request after notifying its observers of the window. What it returns goes to the observers with the window's
  /// event.
  virtual Findings run(Learner& /*learner*/, const Interlude& /*interlude*/) { return {}; }
};

}  // namespace stoker::engine
