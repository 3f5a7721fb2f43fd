// SPDX-License-Identifier: Apache-2.0
#include "commands/train/run_end.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "commands/runs/runs.h"
#include "commands/train/card_lines.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/device/device.h"
#include "engine/files/checkpoint_files.h"
#include "model/freeze.h"
#include "model/script/network_library.h"
#include "observe/observers/progress.h"
#include "observe/report/run_record_files.h"
#include "proof/standing.h"
#include "train/setup/assemble.h"
#include "train/setup/teacher.h"

namespace stoker::train {
namespace {

/// Cells of summary.csv for the row after `updates`, -1: the last; empty where it has none.
std::vector<std::string> cells_of(const observe::RunRecord& record, const std::vector<std::string>& columns,
                                  int64_t updates) {
  const auto& names = record.epoch_columns;
  const auto place = [&](const std::string& name) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  for (auto row = record.epoch_rows.rbegin(); row != record.epoch_rows.rend(); ++row) {
    const size_t at = place("updates");
    if (updates >= 0 && (at >= row->size() || (*row)[at] != std::to_string(updates))) continue;
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      cells.push_back(place(column) < row->size() ? (*row)[place(column)] : "");
    }
    return cells;
  }
  return {};
}

/// "0.4123", "91.50%", "-" of an empty cell.
std::string cell_text(const std::string& cell, const engine::Metric* metric) {
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  if (cell.empty() || *end != '\0') return "-";
  if (metric == nullptr) return core::format("{:.4f}", value);
  const std::string text = observe::metric_text({metric->name, metric->unit, value}, /*percent_digits=*/2);
  return text.substr(metric->name.size() + 1);
}

/// Best, last, time, where: what a terminal shows of a run that has ended, for its width.
std::string end_table(const std::string& run_dir, const engine::FinishEvent& finish, const engine::Metric& best,
                      const observe::Console& console) {
  observe::RunRecord record;
  record.path = run_dir;
  try {
    observe::read_summary(record, 1);
  } catch (const core::Error&) {  // the table is for people: it shows what there is
  }
  const bool has_metric = best.name != "loss" && finish.best_epoch >= 0;
  const std::vector<std::string> columns = {"epoch", "eval_" + best.name, "eval_loss", "train_loss"};
  std::vector<observe::LinePart> head = {{"        epoch", 0, false, "1"}};
  std::vector<observe::LinePart> best_row = {{"", 0, false, "32"}}, last_row = {{"", 0}};
  const std::vector<std::string> of_best = cells_of(record, columns, std::max<int64_t>(0, finish.best_updates));
  const std::vector<std::string> of_last = cells_of(record, columns, -1);
  if (!of_best.empty()) best_row[0].text = core::format("best    {:>5}", of_best[0]);
  if (!of_last.empty()) last_row[0].text = core::format("last    {:>5}", of_last[0]);
  const std::string titles[] = {"", best.name, "val loss", "train loss"};
  for (size_t i = has_metric ? 1 : 2; i < columns.size(); ++i) {
    const engine::Metric* const metric = i == 1 ? &best : nullptr;
    if (i == 2 && finish.best_epoch < 0) continue;
    const int rank = static_cast<int>(i), width = static_cast<int>(std::max<size_t>(titles[i].size(), 10));
    head.push_back({core::format("{:>{}}", titles[i], width), rank, false, "1"});
    if (!of_best.empty()) {
      best_row.push_back({core::format("{:>{}}", cell_text(of_best[i], metric), width), rank, false, "32"});
    }
    if (!of_last.empty()) last_row.push_back({core::format("{:>{}}", cell_text(of_last[i], metric), width), rank});
  }
  std::string table = console.fitted(head);
  if (finish.best_epoch >= 0 && !of_best.empty()) table += "\n" + console.fitted(best_row);
  if (!of_last.empty()) table += "\n" + console.fitted(last_row);
  table += "\n" + console.fitted({{"time", 0, false, "1"},
                                  {"  " + core::duration_text(finish.elapsed_seconds), 0},
                                  {core::counted(finish.epochs_done, "epoch"), 1},
                                  {core::counted(finish.updates, "update"), 2},
                                  {"(" + engine::reason_text(finish.reason, "") + ")", 3}});
  return table + "\nwhere   " + core::printable(run_dir);
}

}  // namespace

void add_result(const engine::Metric& best, int64_t best_epoch, double best_value, Outcome& outcome) {
  if (best_epoch < 0) return;
  outcome.metric = best.name;
  outcome.value = best_value;
}

Outcome outcome_of(const engine::FinishEvent& finish, const config::ResolvedRunOptions& options,
                   const engine::Metric& best) {
  Outcome outcome;
  add_result(best, finish.best_epoch, finish.best_value, outcome);
  outcome.reason = engine::reason_text(finish.reason, finish.signal_name);
  outcome.updates = finish.updates;
  outcome.checkpoint = finish.checkpoint;
  const bool by_signal = finish.reason == engine::StopReason::signal;
  if (!engine::continues(finish.reason)) return outcome;
  const bool interrupted = by_signal && finish.signal_name == "INT";
  outcome.exit_code = interrupted ? core::kExitInterrupted : static_cast<int>(options.stop_exit_code);
  core::log_info("stopped by {} at epoch {} update {}; checkpoint verified: run the same command to continue",
                 !by_signal                            ? "--max-time"
                 : finish.signal_name == core::kJobEnd ? "the end of the job"
                                                       : "SIG" + finish.signal_name,
                 finish.epochs_done + 1, finish.updates);
  return outcome;
}

engine::Metric best_metric(config::EvalMetric which, const engine::Task& task) {
  const engine::Metric wanted = engine::metric(which, engine::MetricUnit::number);
  for (const engine::Metric& metric : task.metrics()) {
    if (metric.name == wanted.name) return metric;
  }
  return wanted;  // the loss, which is not a metric of a task
}

void log_run_summary(const config::ResolvedOptions& all, const engine::FinishEvent& finish, engine::Metric best,
                     observe::Console& console) {
  if (engine::continues(finish.reason)) return;
  const std::string& run_dir = all.run.run_dir;
  console.log_as(core::format("finished ({}) after {}, {}, {}", engine::reason_text(finish.reason, ""),
                              core::counted(finish.epochs_done, "epoch"), core::counted(finish.updates, "update"),
                              core::duration_text(finish.elapsed_seconds)),
                 console.is_live() ? end_table(run_dir, finish, best, console) : "");
  if (finish.best_epoch >= 0) {
    best.value = finish.best_value;
    const bool is_inside = all.train.val_every.unit != config::Interval::Unit::epochs;
    console.log_as(
        core::format("best      {} in epoch {}{}", observe::metric_text(best, /*percent_digits=*/2),
                     finish.best_epoch + 1, is_inside ? core::format(", update {}", finish.best_updates) : ""),
        "");
  }
  if (finish.averaged > 0) {
    const auto value_text = [&](const std::optional<double>& value) {
      best.value = value.value_or(0);
      return value ? observe::metric_text(best, /*percent_digits=*/2) : std::string("not evaluated");
    };
    console.log_as("last      " + value_text(finish.last_value), "");
    core::log_info("average   {} of the last {}: {}/checkpoints/{}", value_text(finish.average_value),
                   core::counted(finish.averaged, "checkpoint"), run_dir, engine::kAverageFolder);
  }
  const bool has_validation = all.data.val_split != config::kNoValidation;
  if (!has_validation) console.log_as("best      not known: there were no validation data", "");
  if (!proof::standing().remedy.is_empty()) {
    core::log_info("backend   {}", proof::summary_text(proof::standing()));
  }
  console.log_as(core::format("run       {0} (summary.csv, metrics.jsonl, train.log, {1}checkpoints/last)", run_dir,
                              has_validation ? "checkpoints/best, " : ""),
                 "");
  core::log_info("next      train eval {0}{1}    train predict {0} IMAGES{2}", core::shell_word(run_dir),
                 has_validation ? "" : " DATA",
                 model::is_network_file(all.model.model) ? "    each with --trust-model" : "");
}

void write_report_or_warn(const std::string& run_dir) {
  try {
    write_run_report({run_dir}, report_file(run_dir));
    core::log_info("report    {}/report.html", run_dir);
  } catch (const core::Error& error) {
    core::log_warning("no report: {}; write it later with train runs --html {}", error.what(),
                      core::shell_word(run_dir));
  }
}

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

/// The options that shape a schedule, for those that need more than their name.
std::string shape_text(const config::ResolvedScheduleOptions& o) {
  switch (o.sched) {
    case config::ScheduleKind::cosine_restarts:
      return format(" of {:g} epochs{}", o.cycle_epochs, o.cycle_mult > 1 ? format(", then x {:g}", o.cycle_mult) : "");
    case config::ScheduleKind::wsd: return format(", the last {:g} epochs down to {:g}", o.cooldown, o.min_lr);
    case config::ScheduleKind::plateau:
      return format(", x {:g} after more than {} bad evaluations", o.decay_rate, o.plateau_patience);
    default: return "";
  }
}

/// The recipe of a run besides data, augmentation, network and batch, in lines of 80 columns. By value:
/// the table, which has the names of values, is bound to options that can be changed.
std::vector<std::string> recipe_lines(config::ResolvedOptions options) {
  const config::Table table(options);
  const config::ResolvedOptimOptions& optim = options.optim;
  const config::ResolvedScheduleOptions& schedule = options.schedule;
  std::string first = format("{} lr {:g}", table.row_of(optim.opt).render(), optim.lr);
  using Kind = config::OptimizerKind;
  const bool is_muon = optim.opt == Kind::muon, is_rmsprop = optim.opt == Kind::rmsprop;
  if (optim.opt == Kind::sgd || is_muon || is_rmsprop) {
    first += format(", {}momentum {:g}", optim.nesterov && !is_rmsprop ? "nesterov " : "", optim.momentum);
  }
  if (is_rmsprop) first += format(", alpha {:g}", optim.beta2);
  if (optim.opt != Kind::sgd && !is_rmsprop) first += format(", betas {:g} {:g}", optim.beta1, optim.beta2);
  first += format(", weight decay {:g}, {}{}", optim.weight_decay, table.row_of(schedule.sched).render(),
                  shape_text(schedule));
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

/// The learning rates of all layers, where they are not one, and what is frozen at first, in lines of 80 columns.
std::vector<std::string> rate_lines(const engine::TrainerSettings& settings, const engine::Learner& learner,
                                    const config::ResolvedOptions& options) {
  std::vector<std::pair<double, std::string>> shares;  // with the first layer of each
  std::string text = "learning rate";
  int64_t frozen = 0;
  for (const optim::NamedParameter& parameter : learner.optimizer->parameters()) {
    if (parameter.thaws) frozen += parameter.tensor.numel();
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    const auto is_same = [&](const auto& share) { return share.first == parameter.lr_scale; };
    if (std::none_of(shares.begin(), shares.end(), is_same)) shares.emplace_back(parameter.lr_scale, layer);
  }
  std::vector<std::string> lines;
  if (shares.size() > 1) {
    for (const auto& [share, layer] : shares) {
      const std::string rate = format(" {:.3g} from {}", options.optim.lr * share, layer);
      if (share != shares.front().first) text += ",";
      if (text.size() + rate.size() > 69) lines.push_back(std::exchange(text, " "));
      text += rate;
    }
    lines.push_back(text);
  }
  if (settings.updater.thaws_at > 0) {
    lines.push_back(format("{} parameters are frozen until update {}", core::count_text(frozen),
                           core::count_text(settings.updater.thaws_at)));
  }
  return lines;
}

/// Whether the choice answers a request of the user.
bool answers_request(const config::Choice& choice) {
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

/// Facts and choices that readers should not miss, the most important first.
std::vector<std::string> run_notes(const config::Configuration& given, const config::Resolution& resolution,
                                   const data::Datasets& datasets) {
  std::vector<std::string> notes = given.notes;
  notes.insert(notes.end(), datasets.notes.begin(), datasets.notes.end());
  if (const std::vector<double>& range = resolution.options.data.input_range; !range.empty()) {
    notes.insert(notes.begin(),
                 format("images with more than 8 bits: {:g} and less is black, {:g} and more white, in all of "
                        "them (--input-range)",
                        range[0], range[1]));
  }
  std::stable_partition(notes.begin(), notes.end(),
                        [](const std::string& note) { return note.rfind("validation", 0) != 0; });
  const std::string& model_option = given.table.row_of(given.options.model.model).name;
  const std::string& replicas_option = given.table.row_of(given.options.train.replicas).name;
  for (const config::Choice& choice : resolution.choices) {
    if (choice.option == model_option || choice.option == replicas_option) {
      notes.insert(notes.begin(), format("--{} {} was chosen: {}", choice.option, choice.value, choice.reason));
    } else if (answers_request(choice)) {
      notes.push_back(format("{} {}: {}", choice.option, choice.value, choice.reason));
    }
  }
  return notes;
}

}  // namespace

observe::BannerFacts known_facts(const Context& context, const config::ResolvedOptions& options,
                                 const data::Datasets& datasets) {
  observe::BannerFacts facts;
  facts.version = STOKER_VERSION;
  facts.libtorch = engine::libtorch_text();
  facts.command_line = command_line_text(context);
  facts.train_images = datasets.train->size();
  facts.val_images = datasets.has_validation ? datasets.val->size() : 0;
  facts.items = data::sample_noun(*datasets.train).several;
  facts.num_classes = options.data.num_classes;
  facts.task = config::task_name(options.data.task);
  facts.learned = config::is_numeric_task(options.data.task) ? "targets" : "classes";
  return facts;
}

observe::BannerFacts banner_facts(const Context& context, const config::Resolution& resolution,
                                  const data::Datasets& datasets, const engine::TrainerSettings& settings,
                                  const engine::Learner& learner, const data::LoaderStats& loader) {
  const config::ResolvedOptions& options = resolution.options;
  observe::BannerFacts facts = known_facts(context, options, datasets);
  std::vector<std::string> card_warnings;
  facts.device = options.device.device;
  facts.backend = proof::summary_text(proof::standing());
  if (learner.device.is_cuda()) {
    const core::AcceleratorFacts device = engine::facts_of(engine::list_accelerators(), learner.device);
    facts.device += format(" {} ({})", device.name, core::bytes_text(static_cast<double>(device.memory_bytes)));
    facts.card = hardware_screen(engine::driver_names(learner.device), card_warnings);
    for (const auto& more :
         {card_option_lines(options, learner.optimizer->is_fused()), untried_lines(device.compute_capability)}) {
      facts.card.insert(facts.card.end(), more.begin(), more.end());
    }
  }
  facts.precision = precision_text(options, settings.updater.step.precision) + graphs_text(options, learner.device);
  facts.augment = augment_text(options, *datasets.train, settings.updater.mix);
  facts.data_notes = run_notes(context.configuration, resolution, datasets);
  facts.data_notes.insert(facts.data_notes.begin(), card_warnings.begin(), card_warnings.end());
  if (const config::Interval& every = options.train.val_every; every.unit == config::Interval::Unit::seconds) {
    facts.data_notes.insert(facts.data_notes.begin(),
                            format("evaluated every {} by the clock: after a stop the weights are bit-identical; best "
                                   "and patience may differ",
                                   core::duration_text(every.amount)));
  }
  facts.model = options.model.model;
  facts.input = input_text(transform_plan(options, *datasets.train, /*training=*/true).shape);
  facts.parameters = model::parameter_count(*learner.model);
  facts.frozen_parameters = model::frozen_count(*learner.model);
  facts.lora = options.model.lora;
  facts.teacher = teacher_text(options);
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
  for (std::string& line : rate_lines(settings, learner, options)) facts.recipe.push_back(std::move(line));
  facts.run_dir = options.run.run_dir;
  facts.choices = resolution.choices;
  return facts;
}

}  // namespace stoker::train
