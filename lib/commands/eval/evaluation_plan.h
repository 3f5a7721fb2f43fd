// SPDX-License-Identifier: Apache-2.0
// What `train eval` and `train predict` are about to take of the memory.
#pragma once

#include "config/config.h"
#include "data/source.h"
#include "engine/task/task.h"
#include "model/image_model.h"
#include "plan/memory_plan.h"

namespace stoker::train {

struct EvaluationParts {
  const config::ResolvedOptions& options;
  const data::Source& source;
  model::ImageModel& model;
  const engine::Task& task;
  torch::Device device;
  int64_t data_bytes = 0;  ///< that opening the data took
};

/// Weights, the batches that the loader holds, and the network's input; activations, too, by trying a few images, where
/// they may matter in `budget`: where a network that holds some hundred times its input would not fit. Images that do
/// not fit when they are tried count as more than what is free.
plan::PlanInputs measure_evaluation(const EvaluationParts& parts, const plan::MemoryBudget& budget);

}  // namespace stoker::train
