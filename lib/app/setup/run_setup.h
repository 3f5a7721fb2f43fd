// SPDX-License-Identifier: Apache-2.0
// A run up to the point where its memory is planned: what `train` and `train plan` have in common.
#pragma once

#include <memory>

#include "app/setup/loader_tuning.h"
#include "config/config.h"
#include "core/system/machine.h"
#include "data/open_datasets.h"
#include "engine/step/learner.h"
#include "engine/task/task.h"
#include "plan/memory_plan.h"

namespace stoker::app {

struct RunSetup {
  core::MachineFacts machine;
  data::Datasets datasets;
  config::DataFacts facts;
  int64_t data_bytes = 0;  ///< that opening the data took
  std::unique_ptr<engine::Task> task;
  engine::Learner learner;
  Caches caches;
  PlanInputs inputs;
  MemoryBudget room;  ///< as it was when the plan was made
};

/// Opens the data and resolves what depends on data and network. `measure`: find the number of workers by measurement
/// where it is automatic.
void set_up_data(config::Configuration& configuration, bool measure, RunSetup& prepared);

/// Opens the device, builds what is trained, measures its memory, chooses an automatic batch, and puts the data behind
/// caches that leave room for the rest. Refuses nothing but a network that does not fit.
void set_up_training(config::Configuration& configuration, bool resumes, RunSetup& prepared);

}  // namespace stoker::app
