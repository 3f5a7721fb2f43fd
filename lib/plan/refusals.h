// SPDX-License-Identifier: Apache-2.0
// What is refused because memory cannot hold it.
#pragma once

#include "plan/memory_plan.h"

namespace stoker::plan {

/// Throws Error{out_of_memory} with the largest training that fits. `plan_check` false: it is a warning only.
void refuse_what_does_not_fit(const PlanInputs& inputs, const MemoryBudget& budget, bool plan_check);
/// Throws Error{out_of_memory} with the largest evaluation batch that may fit. `plan_check` false: it is a warning
/// only.
void refuse_evaluation_that_does_not_fit(const PlanInputs& inputs, const MemoryBudget& budget, bool plan_check);

}  // namespace stoker::plan
