// SPDX-License-Identifier: Apache-2.0
// The batch that `auto` takes.
#pragma once

#include "config/facts.h"
#include "plan/memory_plan.h"

namespace stoker::plan {

/// What batch-size auto takes: the largest that fits with a margin, that divides total-batch-size where one
/// is given, and that is no larger than is useful (docs/tuning.md). Throws Error{out_of_memory} when no image fits.
config::Measured<int64_t> choose_batch(const config::Options& given, PlanInputs inputs, const MemoryBudget& room);

}  // namespace stoker::plan
