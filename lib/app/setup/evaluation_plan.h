// SPDX-License-Identifier: Apache-2.0
// What `train eval` and `train predict` are about to take of the memory.
#pragma once

#include "config/config.h"
#include "data/source.h"
#include "model/model.h"
#include "plan/memory_plan.h"

namespace stoker::app {

/// What surely is taken: weights, the batches that the loader holds, and the network's input. Activations come on top
/// of it. `data_bytes`: what opening the data took.
plan::PlanInputs evaluation_sizes(const config::ResolvedOptions& options, const data::Source& source,
                                  const model::ImageModel& model, int64_t data_bytes);

}  // namespace stoker::app
