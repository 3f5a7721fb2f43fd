// SPDX-License-Identifier: Apache-2.0
// A training run of one rank, or of a process that is alone: from a command line to a run that is finished or stopped.
#include <algorithm>
#include <optional>

#include "app/app.h"
#include "app/listeners/observing.h"
#include "app/listeners/split_overlap.h"
#include "app/output/result_output.h"
#include "app/output/run_report.h"
#include "app/setup/assemble.h"
#include "app/setup/compute_cost.h"
#include "app/setup/loader_tuning.h"
#include "app/setup/plan_run.h"
#include "app/setup/resume.h"
#include "app/setup/run_directory.h"
#include "app/setup/run_setup.h"
#include "app/verbs/rank_share.h"
#include "app/verbs/train_as_rank.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/memory_limit.h"
#include "core/system/stop_signal.h"
#include "data/open_datasets.h"
#include "engine/device/device.h"
#include "model/freeze.h"
#include "observe/listeners/banner.h"
#include "observe/listeners/console.h"
#include "observe/listeners/progress.h"
#include "plan/refusals.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

std::string command_line_text(const Invocation& invocation) {
  std::string text;
  for (int i = 0; i < invocation.argc; ++i) text += (i > 0 ? " " : "") + core::printable(invocation.argv[i]);
  return text;
}

/// Batches of one that skipping bad images leaves are left out while the run goes on; planned ones are refused.
void refuse_batch_of_one(const config::ResolvedOptions& options, const engine::EpochPlan& plan,
                         const data::Source& train, engine::Learner& learner) {
  const int64_t last = plan.images - (plan.batches - 1) * plan.batch_size;
  if (last != 1 || trains_on_one_image(options, train, learner)) return;
  const bool is_left_over = plan.batch_size > 1 && plan.batches > 1;
  throw Error(ErrorKind::config,
              is_left_over
                  ? format("{} images in batches of {} leave a last batch of one, which batch norm cannot train on",
                           plan.images, plan.batch_size)
                  : "batch norm cannot train on batches of one image",
              is_left_over ? "add --drop-last or change --batch-size"
                           : "use a larger --batch-size, or --freeze the batch norms");
}

engine::RunIdentity identity_of(const config::ResolvedOptions& options, const data::Datasets& datasets) {
  engine::RunIdentity identity;
  identity.config_yaml = config::render_yaml(options);
  identity.training_options = config::training_relevant_values(options);
  identity.data_fingerprint = datasets.train->fingerprint() + "+" + datasets.val->fingerprint();
  identity.class_names = datasets.train->learned_names();
  identity.threads = options.device.threads;
  return identity;
}

/// A new checkpoint is written before an old one is removed, so a run needs room for two, and later for one more.
void refuse_full_disk(const config::ResolvedOptions& options, int64_t checkpoint_bytes, const std::string& directory,
                      bool resumes) {
  const auto available = static_cast<double>(core::free_bytes(directory));
  const double needed = static_cast<double>(checkpoint_bytes) * (resumes ? 1 : 2);
  if (!options.run.space_check || available <= 0 || available >= needed) return;
  throw Error(ErrorKind::cannot_create,
              format("the disk under {} has {} free; checkpoints need {}", directory, core::bytes_text(available),
                     core::bytes_text(needed)),
              "free some space, choose another --run-dir, or go on regardless with --no-space-check");
}

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
    const core::AcceleratorFacts device = engine::list_accelerators().at(static_cast<size_t>(learner.device.index()));
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

Outcome outcome_of(const engine::FinishEvent& finish, const config::ResolvedRunOptions& options) {
  Outcome outcome;
  outcome.reason = engine::reason_text(finish.reason, finish.signal_name);
  outcome.updates = finish.updates;
  outcome.checkpoint = finish.checkpoint;
  const bool by_signal = finish.reason == engine::StopReason::signal;
  if (!by_signal && finish.reason != engine::StopReason::max_time) return outcome;
  const bool interrupted = by_signal && finish.signal_name == "INT";
  outcome.exit_code = interrupted ? core::kExitInterrupted : static_cast<int>(options.stop_exit_code);
  core::log_info("stopped by {} at epoch {} update {}; checkpoint verified: run the same command to go on",
                 by_signal ? "SIG" + finish.signal_name : "--max-time", finish.epochs_done + 1, finish.updates);
  return outcome;
}

/// With its unit, without a value.
engine::Metric best_metric(config::EvalMetric which, const engine::Task& task) {
  const engine::Metric wanted = engine::metric(which, engine::MetricUnit::number);
  for (const engine::Metric& metric : task.metrics()) {
    if (metric.name == wanted.name) return metric;
  }
  return wanted;  // the loss, which is no metric of a task
}

/// `best`: what chooses.
void say_where_it_is(const config::ResolvedRunOptions& options, const engine::FinishEvent& finish,
                     engine::Metric best) {
  if (finish.reason == engine::StopReason::signal || finish.reason == engine::StopReason::max_time) return;
  const std::string& run_dir = options.run_dir;
  core::log_info("finished ({}) after {} epoch{}, {} updates, {}", engine::reason_text(finish.reason, ""),
                 finish.epochs_done, finish.epochs_done == 1 ? "" : "s", finish.updates,
                 core::duration_text(finish.elapsed_seconds));
  if (finish.best_epoch >= 0) {
    best.value = finish.best_value;
    core::log_info("best      {} in epoch {}", observe::metric_text(best, /*percent_digits=*/2), finish.best_epoch + 1);
  }
  core::log_info("run       {0} (summary.csv, metrics.jsonl, train.log, checkpoints/best, checkpoints/last)", run_dir);
  core::log_info("next      train eval {0}    train predict {0} IMAGES", run_dir);
}

/// What ended a run stays its exit code: a page that cannot be written can be made again.
void write_report_or_warn(const std::string& run_dir) {
  try {
    write_run_report({run_dir}, run_dir + "/report.html");
    core::log_info("report    {}/report.html", run_dir);
  } catch (const Error& error) {
    core::log_warning("no report: {}; make it with train report {}", error.what(), run_dir);
  }
}

}  // namespace

Outcome train_as_rank(const Invocation& invocation, const JoinedRanks& ranks) {
  config::Configuration& configuration = invocation.configuration;
  const config::CommandLine& command = configuration.command;
  const bool only_shows = command.print_config || command.dry_run;

  RunSetup prepared;
  Settings settings(configuration, share_of_machine(ranks.place()));
  const config::ResolvedOptions& options = settings.options();
  const std::string run_path = options.run.run_dir;
  std::unique_ptr<RunDirectory> run_dir;
  if (!only_shows) {
    if (ranks.is_root()) run_dir = std::make_unique<RunDirectory>(run_path);
    ranks.wait_for_all();  // the root has made and locked it
    core::open_log_file(run_path + (ranks.is_root() ? "/train.log" : format("/train.rank-{}.log", ranks.place().rank)));
  }
  observe::Console console(options.log.quiet || !ranks.is_root());
  engine::CheckpointFiles files(run_path + "/checkpoints");
  std::string checkpoint;
  refuse_unequal_commands(ranks, configuration);
  if (!ranks.is_root()) {  // rank 0 measures and chooses; this one does as it says
    checkpoint = ranks.from_root([] { return ""; });
    take_options(ranks, configuration);
    settings.given_has_changed();
  }
  set_up_data(settings, /*measure=*/!only_shows, prepared);
  if (command.print_config) {
    if (!settings.resolution().waits_for_batch) {
      add_caches(settings, settings.facts().machine, prepared.datasets,
                 batch_buffer_bytes(options, *prepared.datasets.train));
    }
    write_result("-", config::render_yaml(configuration, settings.resolution()));
    return {core::kExitOk, ""};
  }

  SplitOverlap split_overlap(prepared.datasets);
  if (ranks.is_root()) {
    checkpoint = ranks.from_root([&] {
      if (!only_shows) files.prepare();
      return choose_checkpoint(options.run, files, /*is_restart=*/ranks.place().attempt > 0);
    });
  }
  if (!checkpoint.empty()) settings.learn_checkpoint(checkpoint_facts(configuration, checkpoint));
  set_up_training(settings, /*resumes=*/!checkpoint.empty(), prepared, share_of_run(ranks));
  if (ranks.is_root()) give_options(ranks, options);
  plan::refuse_what_does_not_fit(prepared.inputs, prepared.room, options.run.plan_check);
  const engine::RunIdentity identity = identity_of(options, prepared.datasets);
  refuse_unequal_ranks(ranks, identity);
  engine::Checkpoints checkpoints(
      {files.directory(), options.run.keep_last, options.run.save_best, options.run.space_check}, identity);
  if (!checkpoint.empty()) refuse_other_run(checkpoints, checkpoint, options.run.override_resume);

  const torch::Device device = prepared.learner.device;
  engine::Learner& learner = prepared.learner;
  const auto train_feed = training_feed(options, prepared.datasets.train, device, ranks.share());
  const auto val_feed = evaluation_feed(options, prepared.datasets.val, device, ranks.share());
  const engine::EpochPlan plan = plan_epoch(options, train_feed->loader());
  refuse_batch_of_one(options, plan, *prepared.datasets.train, learner);
  const engine::RunProgress at = start_or_resume(checkpoint, checkpoints, learner, train_feed->loader());
  give_back_freed_memory();  // a checkpoint was read into it
  engine::TrainerSettings training = trainer_settings(options, plan, precision_of(options, device), at.train_seconds);
  const optim::Schedule schedule(options.schedule, options.optim.lr, options.train.epochs * plan.updates(),
                                 plan.updates());

  const plan::MemoryPlan memory = plan::make_memory_plan(prepared.inputs);
  observe::BannerFacts facts = banner_facts(invocation, settings.resolution(), prepared.datasets, training, learner,
                                            train_feed->loader().stats());
  facts.ranks = std::max<int64_t>(ranks.place().size, options.device.devices);
  for (const std::string& note : notes_of(ranks.place(), options.device.restarts)) facts.data_notes.push_back(note);
  facts.lanes = std::min(options.device.lanes, std::max<int64_t>(1, facts.replicas / facts.ranks));
  const auto end = engine::limit_reached(training.limits, at);
  if (ranks.is_root() && !command.dry_run && !end) {
    training.compute = compute_cost(options, learner, probe_settings(options, *prepared.datasets.train, device),
                                    facts.ranks * facts.lanes);
    facts.compute = compute_text(training.compute, options);
  }
  facts.caches = prepared.caches.lines;
  facts.memory = plan::plan_summary(memory, prepared.room);
  facts.start = checkpoint.empty() ? "from scratch"
                : end              ? format("finished with {}", checkpoint)
                                   : format("resumes {} (epoch {}, update {})", checkpoint, at.epoch + 1, at.updates);
  for (const std::string& line : observe::banner_lines(facts)) core::log_info("{}", line);
  if (command.dry_run) return {core::kExitOk, "dry-run"};
  if (ranks.is_root()) take_over_checkpoints(checkpoint, at, checkpoints);
  if (end) {
    core::log_info("already finished ({}): nothing to do in {}", engine::reason_text(*end, ""), run_path);
    return {core::kExitOk, "already-finished", at.updates, checkpoint};
  }
  std::optional<Watch> watch;  // of rank 0, which writes the files of the run
  if (ranks.is_root()) {
    refuse_full_disk(options, memory.checkpoint_bytes, files.directory(), !checkpoint.empty());
    core::write_file_atomically(run_path + "/config.yaml", config::render_yaml(configuration, settings.resolution()),
                                /*durable=*/true);
    write_plan_file(run_path, memory, prepared.room, /*observed=*/std::nullopt);
    watch.emplace(Watched{options, settings.facts().machine, *settings.facts().data, prepared.datasets, *prepared.task,
                          device, split_overlap, prepared.bfloat16_speed},
                  run_path, console);
  }
  engine::Observers nobody;
  engine::Trainer trainer(
      training, {*prepared.task, learner, *train_feed, *val_feed, schedule, checkpoints,
                 watch ? watch->observer() : nobody, watch ? &watch->between_updates() : nullptr, ranks.group()});
  std::optional<core::MemoryLimit> limit;  // a CPU says that memory has run out only where there is a limit
  if (options.train.auto_micro_batch && device.is_cpu()) limit.emplace();
  const engine::FinishEvent finish = trainer.run(at);
  limit.reset();
  console.clear_live();
  core::log_debug("trained for {:.4f} s", finish.elapsed_seconds);
  if (ranks.is_root()) {
    write_plan_file(run_path, memory, prepared.room, observed_memory(device));
    say_where_it_is(options.run, finish, best_metric(training.eval_metric, *prepared.task));
    if (options.run.report) write_report_or_warn(run_path);
  }
  return outcome_of(finish, options.run);
}

}  // namespace stoker::app
