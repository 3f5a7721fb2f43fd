// SPDX-License-Identifier: Apache-2.0
// Whether the memory that is free holds what `train eval` and `train predict` are about to take.
#pragma once

#include "config/config.h"
#include "data/source.h"
#include "model/model.h"
#include "plan/memory_plan.h"

namespace stoker::app {

/// What surely is taken: weights, the batches that the loader holds, and the network's input. Activations come on top
/// of it. `data_bytes`: what opening the data took.
PlanInputs evaluation_sizes(const config::ResolvedOptions& options, const data::Source& source,
                            const model::ImageModel& model, int64_t data_bytes);

/// Throws Error{out_of_memory} with the batch that would fit, unless plan-check is off: then it is a warning.
void refuse_evaluation_that_does_not_fit(const config::ResolvedOptions& options, const PlanInputs& inputs,
                                         const MemoryBudget& room);

}  // namespace stoker::app
