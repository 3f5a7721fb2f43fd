// SPDX-License-Identifier: Apache-2.0
#include "app/setup/run_setup.h"

#include <algorithm>

#include "app/setup/assemble.h"
#include "app/setup/plan_run.h"
#include "data/open_datasets.h"

namespace stoker::app {
namespace {

/// What only shows a plan makes no copies of the data.
config::DataOptions without_copies(config::DataOptions options) {
  options.stage_dir.clear();
  return options;
}

}  // namespace

void set_up_data(config::Configuration& configuration, bool measure, RunSetup& prepared) {
  const config::Options& options = configuration.options;
  const int64_t resident_before = settled_resident_bytes();
  prepared.datasets = data::open_datasets(measure ? options.data : without_copies(options.data));
  prepared.data_bytes = std::max<int64_t>(0, settled_resident_bytes() - resident_before);
  prepared.facts = facts_of(*prepared.datasets.train, options.data);
  config::resolve_data(configuration, prepared.facts);
  config::resolve_model(configuration, model_facts_of(options.model));
  require_model_for(options, *prepared.datasets.train);
  if (measure) measure_workers(configuration, prepared.machine, prepared.facts, *prepared.datasets.train);
}

void set_up_training(config::Configuration& configuration, bool resumes, RunSetup& prepared) {
  const config::Options& options = configuration.options;
  const torch::Device device = open_and_configure_device(options);
  prepared.task = build_task(options, device);
  prepared.learner = build_learner(options, device, resumes);
  const PlanParts parts{
      options, prepared.facts, prepared.datasets, prepared.learner, *prepared.task, prepared.data_bytes, resumes};
  prepared.inputs = measure_plan(parts);
  prepared.room = memory_room(device);
  if (options.loader.batch_size.is_auto()) {
    config::resolve_batch(configuration, choose_batch(options, prepared.inputs, prepared.room));
    prepared.inputs.batch_size = options.loader.batch_size;
    prepared.inputs.val_batch_size = options.loader.val_batch_size;
    prepared.inputs.accumulation_steps = options.train.accumulation_steps;
  }
  if (options.loader.drop_last.is_auto()) {  // only then does the network decide
    const bool trains_on_one = trains_on_one_image(options, *prepared.datasets.train, prepared.learner);
    config::resolve_drop_last(configuration, prepared.datasets.train->size(), trains_on_one);
  }
  const int64_t needed = make_memory_plan(prepared.inputs).host_bytes - prepared.room.host_held_bytes;
  core::MachineFacts machine = prepared.machine;
  machine.ram_available_bytes = prepared.room.host_free_bytes;
  prepared.caches = add_caches(configuration, machine, prepared.datasets, std::max<int64_t>(0, needed));
  prepared.inputs.cache_bytes = prepared.caches.planned_bytes;
}

}  // namespace stoker::app
