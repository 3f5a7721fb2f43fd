// SPDX-License-Identifier: Apache-2.0
#include "app/verbs/run_banner.h"

#include "app/setup/assemble.h"
#include "config/task_facts.h"
#include "core/format.h"
#include "engine/device/device.h"
#include "model/freeze.h"

namespace stoker::app {

using core::format;

namespace {

std::string command_line_text(const Invocation& invocation) {
  std::string text;
  for (int i = 0; i < invocation.argc; ++i) text += (i > 0 ? " " : "") + core::shell_word(invocation.argv[i]);
  return text;
}

}  // namespace

observe::BannerFacts banner_facts(const Invocation& invocation, const config::Resolution& resolution,
                                  const data::Datasets& datasets, const engine::TrainerSettings& settings,
                                  const engine::Learner& learner, const data::LoaderStats& loader) {
  const config::ResolvedOptions& options = resolution.options;
  observe::BannerFacts facts;
  facts.version = STOKER_VERSION;
  facts.libtorch = engine::libtorch_text();
  facts.command_line = command_line_text(invocation);
  facts.device = options.device.device;
  if (learner.device.is_cuda()) {
    const auto index = static_cast<size_t>(learner.device.index());
    const core::AcceleratorFacts device = engine::list_accelerators().devices.at(index);
    facts.device += format(" {} ({})", device.name, core::bytes_text(static_cast<double>(device.memory_bytes)));
  }
  facts.precision = precision_text(options, settings.updater.step.precision);
  facts.train_images = datasets.train->size();
  facts.val_images = datasets.val->size();
  facts.num_classes = options.data.num_classes;
  facts.task = config::task_name(options.data.task);
  facts.learned = config::learns_numbers(options.data.task) ? "targets" : "classes";
  facts.augment = augment_text(options, *datasets.train, settings.updater.mix);
  facts.data_notes = invocation.configuration.notes;
  facts.data_notes.insert(facts.data_notes.end(), datasets.notes.begin(), datasets.notes.end());
  facts.model = options.model.model;
  facts.parameters = model::parameter_count(*learner.model);
  facts.frozen_parameters = model::frozen_count(*learner.model);
  facts.batch_size = options.loader.batch_size;
  facts.accumulation = options.train.accumulation_steps;
  facts.replicas = options.train.replicas;
  facts.adds_fast = options.device.exchange == config::Exchange::fast;
  facts.updates_per_epoch = settings.plan.updates();
  facts.epochs = options.train.epochs;
  facts.total_updates = engine::total_updates(settings.plan, settings.limits);
  facts.num_workers = loader.num_workers;
  facts.loader_ring_bytes = loader.ring_bytes;
  facts.learning_rate = options.optim.lr;
  facts.run_dir = options.run.run_dir;
  facts.choices = resolution.choices;
  return facts;
}

}  // namespace stoker::app
