// SPDX-License-Identifier: Apache-2.0
// Updates of a run, recomputed and watched until a number is not finite.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/inspect/recomputation.h"
#include "commands/inspect/update_record.h"
#include "engine/loop/decision.h"

namespace stoker::train {

/// One update as it was seen.
struct WatchedUpdate {
  int64_t update = 0, epoch = 0;  ///< from 1
  double learning_rate = 0;
  double rate_before = 0;    ///< learning rate of the update before it; 0: not known
  double loss = 0;           ///< mean over its images
  double gradient_norm = 0;  ///< L2 norm over all parameters
  double loss_scale = 0;     ///< by which its loss was multiplied; 0: float16 is not used
  double next_scale = 0;     ///< the same of the update after it
  bool is_skipped = false;   ///< its float16 gradients overflowed, and it was left out
  std::vector<GradientRecord> layers;
  std::vector<SampleRecord> samples;
  std::string stage;           ///< the first part of the network whose output is not finite; empty: none
  std::string tensor;          ///< the first weight or buffer that is not finite after it; empty: none
  std::string checkpoint;      ///< that was saved after it and is not what was computed; empty: there is none
  std::string changed_tensor;  ///< tensor of `checkpoint` that differs most
  double changed_by = 0;       ///< how much; infinite where a number is not finite
  /// A skipped update counts as finite: weights stay unchanged.
  bool is_finite() const;
};

/// Whether a run ends after these updates because the last of them were skipped.
bool ends_by_skipping(const std::vector<WatchedUpdate>& updates, const engine::SkipLimits& limits);

/// Continues with `part` of `run` up to update `last`, or to the first that is not finite or that ends_by_skipping().
/// Appends to `updates`, which has those before.
void watch_updates(Recomputation& part, const RecordedRun& run, int64_t last, const engine::SkipLimits& limits,
                   std::vector<WatchedUpdate>& updates);

}  // namespace stoker::train
