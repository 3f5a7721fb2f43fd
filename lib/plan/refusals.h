// SPDX-License-Identifier: Apache-2.0
// What is refused because memory cannot hold it.
#pragma once

#include "config/options.h"
#include "plan/memory_plan.h"

namespace stoker::plan {

/// Checkpoints on disk at once: those that pruning leaves, and the one that is written before it.
int64_t most_checkpoints(const config::ResolvedRunOptions& options);

/// Throws Error{out_of_memory} with the largest training that fits. `plan_check` false: it is a warning only.
void refuse_what_does_not_fit(const PlanInputs& inputs, const MemoryBudget& budget, bool plan_check);
/// Throws Error{out_of_memory} with the largest evaluation batch that may fit. `plan_check` false: it is a warning
/// only.
void refuse_evaluation_that_does_not_fit(const PlanInputs& inputs, const MemoryBudget& budget, bool plan_check);

}  // namespace stoker::plan
