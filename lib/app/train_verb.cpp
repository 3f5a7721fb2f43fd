// SPDX-License-Identifier: Apache-2.0
// `train`: from a command line to a finished, stopped or already finished run.
#include <filesystem>
#include <optional>

#include "app/app.h"
#include "app/assemble.h"
#include "app/feeding.h"
#include "app/observing.h"
#include "app/result_output.h"
#include "app/run_directory.h"
#include "app/run_report.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/stop_signal.h"
#include "engine/device.h"
#include "model/freeze.h"
#include "observe/banner.h"
#include "observe/console.h"

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

/// The checkpoint to go on from, or "" to start from scratch.
std::string choose_checkpoint(const config::RunOptions& options, engine::CheckpointFiles& files) {
  const std::vector<int64_t> present = files.list();
  if (options.resume == "none") {
    if (present.empty()) return "";
    throw Error(ErrorKind::config, format("--resume none, but {} holds checkpoints of an earlier run", files.directory()),
                "choose another --run-dir, or move the old run away");
  }
  if (options.resume == "auto") {
    const std::string path = files.newest_verified();
    if (!path.empty() || present.empty()) return path;
    throw Error(ErrorKind::data, format("none of the {} checkpoints in {} verifies", present.size(), files.directory()),
                "restore one from a copy, or choose another --run-dir to start over");
  }
  if (options.resume == "last" || options.resume == "best") {
    const int64_t updates = files.pointed(options.resume);
    if (updates >= 0) return files.path_of(updates);
    throw Error(ErrorKind::no_input, format("--resume {}: there is no such checkpoint in {}", options.resume, files.directory()),
                "use --resume auto to start or resume");
  }
  return find_checkpoint(options.resume, "last");
}

void refuse_other_run(const engine::Checkpoints& checkpoints, const std::string& path, bool override_resume) {
  const std::vector<std::string> differences = checkpoints.differences(path);
  if (differences.empty()) return;
  if (override_resume) {
    for (const std::string& difference : differences) core::log_warning("--override-resume accepts: {}", difference);
    return;
  }
  std::string list;
  for (const std::string& difference : differences) list += "\n  " + difference;
  throw Error(ErrorKind::config, format("{} was written by a run that differs from this one:{}", path, list),
              "use the same options, another --run-dir for a new run, or --override-resume to go on regardless");
}

/// A resume from an older checkpoint leaves newer ones behind: damaged ones, or those of a path not taken. Auto-resume
/// must not find them later, and pruning must not count them among the checkpoints that it keeps.
void set_newer_aside(engine::CheckpointFiles& files, int64_t updates) {
  for (const int64_t newer : files.list()) {
    if (newer <= updates) continue;
    const std::string aside = files.directory() + format("/superseded-step-{:08d}", newer);
    std::error_code ignored;
    std::filesystem::remove_all(aside, ignored);
    std::filesystem::rename(files.path_of(newer), aside);
    core::log_warning("{} is newer than the checkpoint resumed from: moved to {}", files.path_of(newer), aside);
  }
}

/// CPU results depend on the number of threads: an automatic count follows the checkpoint.
void keep_thread_count(config::Configuration& configuration, const std::string& checkpoint) {
  config::Row& row = *configuration.table.find("threads");
  if (checkpoint.empty() || row.origin.kind != config::Origin::Kind::resolved) return;
  const core::Json extra = engine::read_manifest(checkpoint).extra;
  const auto threads = extra.find("threads");  // a manifest that is not ours may hold anything
  const int64_t saved = threads != extra.end() && threads->is_number_integer() ? threads->get<int64_t>() : 0;
  if (saved <= 0 || saved == configuration.options.device.threads) return;
  configuration.table.set(row, std::to_string(saved),
                          {config::Origin::Kind::resolved, "as in the checkpoint, so that the bits stay the same"});
}

void refuse_single_image_batch(const config::Options& options, const engine::EpochPlan& plan) {
  const int64_t last = plan.images - (plan.batches - 1) * plan.batch_size;
  if (last != 1 || plan.images == 1 || options.loader.drop_last) return;
  throw Error(ErrorKind::config,
              format("{} images in batches of {} leave a last batch of one, which batch norm cannot train on",
                     plan.images, plan.batch_size),
              "add --drop-last or change --batch-size");
}

/// What only shows a plan makes no copies of the data.
config::DataOptions without_copies(config::DataOptions options) {
  options.stage_dir.clear();
  return options;
}

engine::RunIdentity identity_of(const config::Configuration& configuration, const data::Datasets& datasets) {
  engine::RunIdentity identity;
  identity.config_yaml = config::render_yaml(configuration.table, /*with_origin=*/false);
  identity.training_options = config::training_relevant_values(configuration.table);
  identity.data_fingerprint = datasets.train->fingerprint() + "+" + datasets.val->fingerprint();
  identity.class_names = datasets.train->learned_names();
  identity.threads = configuration.options.device.threads;
  return identity;
}

/// Bytes of one checkpoint's tensors: weights, what the optimizer keeps per weight, and their average.
double checkpoint_bytes(const config::Options& options, const engine::Trainee& trainee) {
  const bool adam = options.optim.opt != config::OptimizerKind::sgd;
  const int copies = 1 + (adam ? 2 : options.optim.momentum > 0 ? 1 : 0) + (trainee.ema ? 1 : 0);
  return static_cast<double>(model::parameter_count(*trainee.model)) * sizeof(float) * copies;
}

/// A new checkpoint is written before an old one is removed, so a run needs room for two, and later for one more.
void refuse_full_disk(const config::Options& options, const engine::Trainee& trainee, const std::string& directory,
                      bool resumes) {
  const auto available = static_cast<double>(core::free_bytes(directory));
  const double needed = checkpoint_bytes(options, trainee) * (resumes ? 1 : 2);
  if (!options.run.space_check || available <= 0 || available >= needed) return;
  throw Error(ErrorKind::cannot_create,
              format("the disk under {} has {} free; checkpoints need {}", directory, core::bytes_text(available),
                     core::bytes_text(needed)),
              "free some space, choose another --run-dir, or go on regardless with --no-space-check");
}

observe::BannerFacts banner_facts(const Invocation& invocation, const data::Datasets& datasets,
                                  const engine::TrainerSettings& settings, const engine::Trainee& trainee,
                                  const data::LoaderStats& loader) {
  const config::Options& options = invocation.configuration.options;
  observe::BannerFacts facts;
  facts.version = STOKER_VERSION;
  facts.libtorch = engine::libtorch_text();
  facts.command_line = command_line_text(invocation);
  facts.device = options.device.device;
  if (trainee.device.is_cuda()) {
    const core::AcceleratorFacts device = engine::list_accelerators().at(static_cast<size_t>(trainee.device.index()));
    facts.device += format(" {} ({})", device.name, core::bytes_text(static_cast<double>(device.memory_bytes)));
  }
  facts.precision = precision_text(options, settings.update.precision);
  facts.train_images = datasets.train->size();
  facts.val_images = datasets.val->size();
  facts.num_classes = options.data.num_classes;
  facts.task = config::task_name(options.data.task);
  facts.learned = config::learns_numbers(options.data.task) ? "targets" : "classes";
  facts.augment = augment_text(options, *datasets.train, settings.mix);
  facts.data_notes = invocation.configuration.notes;
  facts.data_notes.insert(facts.data_notes.end(), datasets.notes.begin(), datasets.notes.end());
  facts.model = options.model.model;
  facts.parameters = model::parameter_count(*trainee.model);
  facts.frozen_parameters = model::frozen_count(*trainee.model);
  facts.batch_size = options.loader.batch_size;
  facts.accumulation = options.train.accumulation_steps;
  facts.updates_per_epoch = settings.plan.updates();
  facts.epochs = options.train.epochs;
  facts.total_updates = engine::total_updates(settings.plan, settings.limits);
  facts.num_workers = loader.num_workers;
  facts.loader_ring_bytes = loader.ring_bytes;
  facts.learning_rate = options.optim.lr;
  facts.run_dir = options.run.run_dir;
  return facts;
}

Outcome outcome_of(const engine::FinishEvent& finish, const config::RunOptions& options) {
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

void say_where_it_is(const config::RunOptions& options, const engine::FinishEvent& finish) {
  if (finish.reason == engine::StopReason::signal || finish.reason == engine::StopReason::max_time) return;
  const std::string& run_dir = options.run_dir;
  core::log_info("finished ({}) after {} epoch{}, {} updates, {}", engine::reason_text(finish.reason, ""),
                 finish.epochs_done, finish.epochs_done == 1 ? "" : "s", finish.updates,
                 core::duration_text(finish.elapsed_seconds));
  if (finish.best_epoch >= 0) core::log_info("best      {:.4f} in epoch {}", finish.best_value, finish.best_epoch + 1);
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

/// A fresh start or an exact continuation.
engine::TrainState start_or_resume(const std::string& checkpoint, engine::Checkpoints& checkpoints,
                                   engine::Trainee& trainee, data::Loader& loader) {
  if (checkpoint.empty()) return {};
  std::vector<data::BadSample> bad;
  const engine::TrainState at = checkpoints.load(checkpoint, trainee, bad);
  loader.restore_bad_samples(bad);
  set_newer_aside(checkpoints.files(), at.updates);
  checkpoints.repair_links(at);
  return at;
}

}  // namespace

Outcome train(const Invocation& invocation) {
  config::Configuration& configuration = invocation.configuration;
  const config::Options& options = configuration.options;
  const config::CommandLine& command = configuration.command;
  const bool only_shows = command.print_config || command.dry_run;

  const core::MachineFacts machine = machine_with_accelerators();
  config::resolve_machine(configuration, machine);
  std::unique_ptr<RunDirectory> run_dir;
  if (!only_shows) {
    run_dir = std::make_unique<RunDirectory>(options.run.run_dir);
    core::open_log_file(run_dir->path() + "/train.log");
  }
  observe::Console console(options.log.quiet);
  data::Datasets datasets = data::open_datasets(only_shows ? without_copies(options.data) : options.data);
  const config::DataFacts data_facts = facts_of(*datasets.train, options.data);
  config::resolve_data(configuration, data_facts);
  config::resolve_model(configuration, model_facts_of(options.model));
  require_model_for(options, *datasets.train);
  if (!only_shows) measure_workers(configuration, machine, data_facts, *datasets.train);
  const std::vector<std::string> caches = add_caches(configuration, machine, datasets);
  if (command.print_config) {
    write_result("-", config::render_yaml(configuration.table, /*with_origin=*/true));
    return {core::kExitOk, ""};
  }

  engine::CheckpointFiles files(options.run.run_dir.value() + "/checkpoints");
  if (!only_shows) files.prepare();
  const std::string checkpoint = choose_checkpoint(options.run, files);
  keep_thread_count(configuration, checkpoint);
  const torch::Device device = open_and_configure_device(options);
  engine::Checkpoints checkpoints({files.directory(), options.run.keep_last, options.run.save_best,
                                   options.run.space_check}, identity_of(configuration, datasets));
  if (!checkpoint.empty()) refuse_other_run(checkpoints, checkpoint, options.run.override_resume);

  const auto train_feed = training_feed(options, datasets.train, device);
  const auto val_feed = evaluation_feed(options, datasets.val, device);
  const engine::EpochPlan plan = plan_epoch(options, train_feed->loader());
  refuse_single_image_batch(options, plan);
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  engine::Trainee trainee = build_trainee(options, device, /*resumes=*/!checkpoint.empty());
  const engine::TrainState at = start_or_resume(checkpoint, checkpoints, trainee, train_feed->loader());
  engine::TrainerSettings settings =
      trainer_settings(options, plan, precision_of(options, device), at.train_seconds);
  const optim::Schedule schedule(options.schedule, options.optim.lr, options.train.epochs * plan.updates(), plan.updates());

  observe::BannerFacts facts = banner_facts(invocation, datasets, settings, trainee, train_feed->loader().stats());
  facts.caches = caches;
  facts.start = checkpoint.empty() ? "from scratch"
                                   : format("resumes {} (epoch {}, update {})", checkpoint, at.epoch + 1, at.updates);
  for (const std::string& line : observe::banner_lines(facts, configuration.table)) core::log_info("{}", line);
  if (command.dry_run) return {core::kExitOk, "dry-run"};
  if (const auto reason = engine::limit_reached(settings.limits, at)) {
    core::log_info("already finished ({}): nothing to do in {}", engine::reason_text(*reason, ""), run_dir->path());
    return {core::kExitOk, "already-finished", at.updates, checkpoint};
  }
  refuse_full_disk(options, trainee, files.directory(), !checkpoint.empty());
  core::write_file_atomically(run_dir->path() + "/config.yaml",
                              config::render_yaml(configuration.table, /*with_origin=*/true), /*durable=*/true);

  Watch watch({options, machine, data_facts, datasets, trainee}, run_dir->path(), console);
  settings.keep_account = !is_unwatched_for_tests();
  engine::Trainer trainer(settings, {*task, trainee, *train_feed, *val_feed, schedule, checkpoints, watch.observer()});
  const engine::FinishEvent finish = trainer.run(at);
  console.clear_live();
  core::log_debug("trained for {:.4f} s", finish.elapsed_seconds);
  say_where_it_is(options.run, finish);
  if (options.run.report) write_report_or_warn(run_dir->path());
  return outcome_of(finish, options.run);
}

}  // namespace stoker::app
