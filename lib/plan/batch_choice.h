// SPDX-License-Identifier: Apache-2.0
// The batch that `auto` takes.
#pragma once

#include "config/facts.h"
#include "plan/memory_plan.h"

namespace stoker::plan {

/// What the choice of a batch depends on besides memory.
struct BatchRules {
  int64_t total_batch_size = 0;       ///< images that an update is to have; 0: as many as it gets
  bool val_batch_is_given = false;    ///< else evaluation has batches of the same size
  bool keeps_any_last_batch = false;  ///< the last batch of an epoch is trained on, whatever its size
};

/// What batch-size auto takes: the largest that fits with a margin, that divides total-batch-size where one
/// is given, and that is no larger than is useful (docs/how-to/fit-memory.md). Throws Error{out_of_memory}
/// when no image fits.
config::Measured<int64_t> choose_batch(const BatchRules& rules, PlanInputs inputs, const MemoryBudget& budget);

}  // namespace stoker::plan
