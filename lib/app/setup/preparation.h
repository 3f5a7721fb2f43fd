// SPDX-License-Identifier: Apache-2.0
// A run up to the point where its memory is planned: what `train` and `train plan` have in common.
#pragma once

#include <memory>

#include "app/setup/feeding.h"
#include "config/config.h"
#include "core/system/machine.h"
#include "data/source.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/task/task.h"
#include "plan/memory_plan.h"

namespace stoker::app {

struct Preparation {
  core::MachineFacts machine;
  data::Datasets datasets;
  config::DataFacts facts;
  int64_t data_bytes = 0;  ///< that opening the data took
  std::unique_ptr<engine::Task> task;
  engine::Trainee trainee;
  Caches caches;
  PlanInputs inputs;
  MemoryRoom room;  ///< as it was when the plan was made
};

/// Opens the data and resolves what depends on data and network. `measure`: find the number of workers by measurement
/// where it is automatic.
void prepare_data(config::Configuration& configuration, bool measure, Preparation& prepared);

/// Opens the device, builds what is trained, measures its memory, chooses an automatic batch, and puts the data behind
/// caches that leave room for the rest. Refuses nothing but a network that does not fit.
void prepare_training(config::Configuration& configuration, bool resumes, Preparation& prepared);

}  // namespace stoker::app
