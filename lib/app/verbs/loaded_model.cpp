// SPDX-License-Identifier: Apache-2.0
#include "app/verbs/loaded_model.h"

#include "app/setup/assemble.h"
#include "app/setup/evaluation_plan.h"
#include "app/setup/plan_run.h"
#include "app/setup/run_directory.h"
#include "engine/checkpoint/weights.h"
#include "plan/refusals.h"

namespace stoker::app {
namespace {

/// Channels that the first convolution takes; 0 where that cannot be told.
int64_t input_channels(const std::vector<model::NamedTensor>& weights) {
  for (const model::NamedTensor& weight : weights) {
    if (weight.tensor.dim() == 4) return weight.tensor.size(1);  // [out, in, height, width]
  }
  return 0;
}

/// Facts about the data, where the checkpoint does not know better.
config::DataFacts facts_of_use(const LoadedModel& loaded) {
  config::DataFacts facts = evaluation_facts(*loaded.source, loaded.given->options.data,
                                             static_cast<int64_t>(loaded.saved.class_names.size()));
  const int64_t channels = input_channels(loaded.saved.weights);
  if (!facts.has_fixed_size && (channels == 1 || channels == 3)) facts.channels = channels;
  return facts;
}

}  // namespace

LoadedModel load_configuration(const Invocation& invocation, const std::string& run_or_checkpoint) {
  LoadedModel loaded;
  loaded.saved = engine::load_saved_model(find_checkpoint(run_or_checkpoint, invocation.configuration.command.which));
  loaded.given = std::make_unique<config::Configuration>();
  config::read_run_config(loaded.saved.config_yaml, loaded.saved.path + "/config.yaml", *loaded.given);
  config::parse_command_line(invocation.argc, invocation.argv, *loaded.given);
  loaded.settings.emplace(*loaded.given);
  return loaded;
}

void load_network(const OpenSource& open, LoadedModel& loaded) {
  const config::ResolvedOptions& options = loaded.options();
  const int64_t resident_before = settled_resident_bytes();
  loaded.source = open(*loaded.given, loaded.saved.class_names);
  const int64_t data_bytes = std::max<int64_t>(0, settled_resident_bytes() - resident_before);
  loaded.settings->settle(facts_of_use(loaded));
  require_model_for(options, *loaded.source);
  loaded.device = open_and_configure_device(options);
  loaded.precision = precision_of(options, loaded.device);
  loaded.task = build_task(options, loaded.device);
  loaded.model = build_model(options, loaded.device);
  engine::load_weights(*loaded.model, loaded.saved.weights, loaded.saved.path);
  plan::refuse_evaluation_that_does_not_fit(evaluation_sizes(options, *loaded.source, *loaded.model, data_bytes),
                                            memory_room(loaded.device), options.run.plan_check);
}

}  // namespace stoker::app
