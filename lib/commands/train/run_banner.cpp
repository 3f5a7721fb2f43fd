// SPDX-License-Identifier: Apache-2.0
#include "commands/train/run_banner.h"

#include <algorithm>

#include "config/task_facts.h"
#include "core/format.h"
#include "engine/device/device.h"
#include "model/freeze.h"
#include "proof/standing.h"
#include "train/setup/assemble.h"

namespace stoker::train {

using core::format;

namespace {

/// The command of --on-end is left out: it may hold passwords, and logs are handed on.
std::string command_line_text(const Context& context) {
  std::string text;
  bool is_secret = false;
  for (int i = 0; i < context.argc; ++i) {
    std::string word = context.argv[i], flag = word.substr(0, word.find('='));
    std::replace(flag.begin(), flag.end(), '_', '-');
    const bool names_secret = flag == "--on-end";
    if (is_secret) word = "...";
    if (names_secret && word.find('=') != std::string::npos) word = "--on-end=...";
    is_secret = names_secret && word.find('=') == std::string::npos;
    text += (i > 0 ? " " : "") + core::shell_word(word);
  }
  return text;
}

/// What the numbers of a run depend on besides data, augmentation, network and batch, in lines of 80 columns. By value:
/// the table, which has the names of values, is bound to options that can be changed.
std::vector<std::string> recipe_lines(config::ResolvedOptions options) {
  const config::Table table(options);
  const config::ResolvedOptimOptions& optim = options.optim;
  const config::ResolvedScheduleOptions& schedule = options.schedule;
  std::string first = format("{} lr {:g}", table.row_of(optim.opt).render(), optim.lr);
  if (optim.opt == config::OptimizerKind::sgd) {
    first += format(", {}momentum {:g}", optim.nesterov ? "nesterov " : "", optim.momentum);
  } else {
    first += format(", betas {:g} {:g}", optim.beta1, optim.beta2);
  }
  first += format(", weight decay {:g}, {}", optim.weight_decay, table.row_of(schedule.sched).render());
  if (schedule.warmup_epochs > 0) {
    first +=
        format(" after {:g} {} of warm-up", schedule.warmup_epochs, schedule.warmup_epochs == 1 ? "epoch" : "epochs");
  }
  std::string second =
      format("label smoothing {:g}, EMA {}, TTA {}", options.train.label_smoothing,
             optim.model_ema ? format("{:g}", optim.model_ema_decay) : "off", table.row_of(options.train.tta).render());
  if (optim.clip_grad > 0) second += format(", gradients clipped at {:g}", optim.clip_grad);
  return {first, second + format(", seed {}", options.train.seed)};
}

/// Somebody asked for something, and this is what became of it.
bool answers_somebody(const config::Choice& choice) {
  switch (choice.source) {
    case config::ChoiceSource::environment:
    case config::ChoiceSource::configuration: return true;
    case config::ChoiceSource::rule:
    case config::ChoiceSource::measured:
    case config::ChoiceSource::checkpoint: return false;
  }
  return false;
}

/// "3 x 32 x 32", "8 frames of 3 x 224 x 224".
std::string input_text(const data::SampleShape& shape) {
  const std::string image = format("{} x {} x {}", shape.channels, shape.height, shape.width);
  if (shape.images() == 1) return image;
  return format("{} frames{} of {}", shape.images(), shape.views > 1 ? " in two qualities" : "", image);
}

}  // namespace

observe::BannerFacts known_facts(const Context& context, const config::ResolvedOptions& options,
                                 const data::Datasets& datasets) {
  observe::BannerFacts facts;
  facts.version = STOKER_VERSION;
  facts.libtorch = engine::libtorch_text();
  facts.command_line = command_line_text(context);
  facts.train_images = datasets.train->size();
  facts.val_images = datasets.val->size();
  facts.items = data::item_word(*datasets.train).several;
  facts.num_classes = options.data.num_classes;
  facts.task = config::task_name(options.data.task);
  facts.learned = config::learns_numbers(options.data.task) ? "targets" : "classes";
  return facts;
}

observe::BannerFacts banner_facts(const Context& context, const config::Resolution& resolution,
                                  const data::Datasets& datasets, const engine::TrainerSettings& settings,
                                  const engine::Learner& learner, const data::LoaderStats& loader) {
  const config::ResolvedOptions& options = resolution.options;
  observe::BannerFacts facts = known_facts(context, options, datasets);
  facts.device = options.device.device;
  facts.backend = proof::summary_text(proof::standing());
  if (learner.device.is_cuda()) {
    const auto index = static_cast<size_t>(learner.device.index());
    const core::AcceleratorFacts device = engine::list_accelerators().devices.at(index);
    facts.device += format(" {} ({})", device.name, core::bytes_text(static_cast<double>(device.memory_bytes)));
  }
  facts.precision = precision_text(options, settings.updater.step.precision) + graphs_text(options, learner.device);
  facts.augment = augment_text(options, *datasets.train, settings.updater.mix);
  facts.data_notes = context.configuration.notes;
  facts.data_notes.insert(facts.data_notes.end(), datasets.notes.begin(), datasets.notes.end());
  if (const std::vector<double>& range = options.data.input_range; !range.empty()) {
    facts.data_notes.insert(
        facts.data_notes.begin(),
        format("images with more than 8 bits: {:g} and less is black, {:g} and more white, in all of "
               "them (--input-range)",
               range[0], range[1]));
  }
  std::stable_partition(facts.data_notes.begin(), facts.data_notes.end(),
                        [](const std::string& note) { return note.rfind("validation:", 0) != 0; });
  facts.model = options.model.model;
  facts.input = input_text(transform_plan(options, *datasets.train, /*training=*/true).shape);
  const config::Configuration& given = context.configuration;
  const std::string& model_option = given.table.row_of(given.options.model.model).name;
  const std::string& replicas_option = given.table.row_of(given.options.train.replicas).name;
  for (const config::Choice& choice : resolution.choices) {
    if (choice.option == model_option || choice.option == replicas_option) {
      facts.data_notes.insert(facts.data_notes.begin(),
                              format("--{} {} was chosen: {}", choice.option, choice.value, choice.reason));
    } else if (answers_somebody(choice)) {
      facts.data_notes.push_back(format("{} {}: {}", choice.option, choice.value, choice.reason));
    }
  }
  facts.parameters = model::parameter_count(*learner.model);
  facts.frozen_parameters = model::frozen_count(*learner.model);
  facts.batch_size = options.loader.batch_size;
  facts.accumulation = options.train.accumulation_steps;
  facts.replicas = options.train.replicas;
  facts.bits_depend_on_ranks = config::bits_depend_on_ranks(options.device.exchange);
  facts.updates_per_epoch = settings.plan.updates();
  facts.epochs = options.train.epochs;
  facts.total_updates = engine::total_updates(settings.plan, settings.limits);
  facts.max_updates = settings.limits.max_updates;
  facts.num_workers = loader.num_workers;
  facts.loader_ring_bytes = loader.ring_bytes;
  facts.recipe = recipe_lines(options);
  facts.learning_rate = options.optim.lr;
  facts.run_dir = options.run.run_dir;
  facts.choices = resolution.choices;
  return facts;
}

}  // namespace stoker::train
