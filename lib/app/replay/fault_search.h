// SPDX-License-Identifier: Apache-2.0
// Where a divergence or a spike of a run began: its updates are computed again and watched until a number is not
// finite.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/replay/recomputation.h"
#include "app/replay/update_record.h"

namespace stoker::app {

/// One update as the search saw it.
struct WatchedUpdate {
  int64_t update = 0, epoch = 0;  ///< from 1
  double learning_rate = 0;
  double rate_before = 0;    ///< learning rate of the update before it; 0: not known
  double loss = 0;           ///< mean over its images
  double gradient_norm = 0;  ///< of all parameters
  std::vector<GradientRecord> layers;
  std::vector<SampleRecord> samples;
  std::string stage;   ///< the first part of the network whose output is not finite; empty: none
  std::string tensor;  ///< the first weight or buffer that is not finite after it; empty: none
  bool is_finite() const;
};

/// What is to blame.
struct Blame {
  enum class Kind { nothing, spike, divergence };
  Kind kind = Kind::nothing;
  WatchedUpdate began;                ///< the update in which it began
  int64_t not_finite_at = 0;          ///< divergence: the update whose numbers are the first that are not finite
  std::string cause;                  ///< in words
  std::vector<SampleRecord> samples;  ///< that stand out in it, the worst first; empty: none does
  std::string layer;                  ///< in which it shows first; empty: cannot be told
};

/// Goes on with `part` up to update `last`, or to the first update that is not finite.
std::vector<WatchedUpdate> watch_updates(Recomputation& part, int64_t last);
/// From updates in order. A spike is a loss or a gradient norm far above the median of the updates before it.
Blame find_fault(const std::vector<WatchedUpdate>& updates);

}  // namespace stoker::app
