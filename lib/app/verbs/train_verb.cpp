// SPDX-License-Identifier: Apache-2.0
// A training run of one rank, or of a process that is alone: from a command line to a run that is finished or stopped.
#include <algorithm>
#include <optional>

#include "app/app.h"
#include "app/listeners/observing.h"
#include "app/network/network_file.h"
#include "app/output/last_line.h"
#include "app/output/result_output.h"
#include "app/replay/identity.h"
#include "app/setup/assemble.h"
#include "app/setup/compute_cost.h"
#include "app/setup/doubts.h"
#include "app/setup/loader_tuning.h"
#include "app/setup/plan_run.h"
#include "app/setup/resume.h"
#include "app/setup/run_directory.h"
#include "app/setup/run_setup.h"
#include "app/verbs/look_at_files.h"
#include "app/verbs/rank_share.h"
#include "app/verbs/run_banner.h"
#include "app/verbs/run_end.h"
#include "app/verbs/train_as_rank.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/memory_limit.h"
#include "core/system/stop_signal.h"
#include "data/open_datasets.h"
#include "engine/device/device.h"
#include "engine/loop/split_overlap.h"
#include "model/freeze.h"
#include "observe/listeners/banner.h"
#include "observe/listeners/console.h"
#include "observe/listeners/progress.h"
#include "plan/refusals.h"
#include "proof/standing.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

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

/// {n} of run-dir becomes a number.
void number_run_dir(config::Configuration& configuration, const JoinedRanks& ranks, bool make) {
  config::Auto<std::string>& run_dir = configuration.options.run.run_dir;
  if (run_dir.is_auto() || run_dir.value().find("{n}") == std::string::npos) return;
  if (ranks.place().size > 1) {
    throw Error(ErrorKind::config, "{n} in --run-dir numbers the runs of one process, not of several",
                "name the directory");
  }
  run_dir = numbered_directory(run_dir.value(), make);
}

std::unique_ptr<RunDirectory> open_run_directory(const std::string& path, bool is_fresh) {
  const std::string aside = is_fresh ? set_run_aside(path) : "";
  if (!aside.empty()) core::log_info("the run in {} was set aside as {}", path, aside);
  return std::make_unique<RunDirectory>(path);
}

/// What happens to the learning rate of a run that goes on behind its end.
std::string extension_text(const Extension& extension, const optim::Schedule& schedule, const engine::RunProgress& at) {
  return format(
      "extends the run from {} to {} epochs: the schedule now spans all {}, the learning rate goes on at {:.4g} "
      "(it had ended at {:.4g})",
      extension.epochs_before, extension.epochs, extension.epochs, schedule.at(at.updates), at.learning_rate);
}

}  // namespace

Outcome train_as_rank(const Invocation& invocation, const JoinedRanks& ranks) {
  config::Configuration& configuration = invocation.configuration;
  const config::CommandLine& command = configuration.command;
  const bool only_shows = command.print_config || command.dry_run;

  number_run_dir(configuration, ranks, /*make=*/!only_shows);
  RunSetup prepared;
  Settings settings(configuration, share_of_machine(ranks.place()));
  const config::ResolvedOptions& options = settings.options();
  const std::string run_path = options.run.run_dir;
  std::unique_ptr<RunDirectory> run_dir;
  if (!only_shows) {
    if (ranks.is_root()) run_dir = open_run_directory(run_path, command.fresh && ranks.place().attempt == 0);
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

  engine::SplitOverlap split_overlap(prepared.datasets.train, prepared.datasets.val);
  if (ranks.is_root()) {
    checkpoint = ranks.from_root([&] {
      if (!only_shows) files.prepare();
      return choose_checkpoint(options.run, files, /*is_restart=*/ranks.place().attempt > 0, command.fresh);
    });
  }
  if (!checkpoint.empty()) {
    settings.learn_checkpoint(checkpoint_facts(checkpoint));
    settings.learn_network();  // the network may be that of the checkpoint
  }
  set_up_training(settings, /*resumes=*/!checkpoint.empty(), prepared, share_of_run(ranks));
  if (ranks.is_root()) give_options(ranks, options);
  plan::refuse_what_does_not_fit(prepared.inputs, prepared.room, options.run.plan_check);
  const engine::RunIdentity identity = identity_of(options, prepared.datasets, ranks.place().size);
  refuse_unequal_ranks(ranks, identity);
  engine::Checkpoints checkpoints(checkpoint_settings(options.run, files.directory()), identity);
  std::optional<Extension> extension;
  if (!checkpoint.empty()) {
    extension = extension_of(checkpoint, options.train.epochs);
    refuse_other_run(checkpoints, checkpoint, options.run.override_resume, extension);
  }

  const torch::Device device = prepared.learner.device;
  engine::Learner& learner = prepared.learner;
  const auto graphs = graph_runner_for(options, device);
  const auto train_feed = training_feed(options, prepared.datasets.train, device, ranks.share());
  const auto val_feed = evaluation_feed(options, prepared.datasets.val, device, ranks.share(), /*is_repeated=*/true);
  const engine::EpochPlan plan = plan_epoch(options, train_feed->loader());
  refuse_batch_of_one(options, plan, *prepared.datasets.train, learner);
  const engine::RunProgress at = start_or_resume(checkpoint, checkpoints, learner, train_feed->loader());
  give_back_freed_memory();  // a checkpoint was read into it
  engine::TrainerSettings training = trainer_settings(options, plan, precision_of(options, device), at.train_seconds);
  training.backend = proof::summary_text(proof::standing());
  training.items = data::item_word(*prepared.datasets.train).several;
  const optim::Schedule schedule(options.schedule, options.optim.lr, options.train.epochs * plan.updates(),
                                 plan.updates());

  const plan::MemoryPlan memory = plan::make_memory_plan(prepared.inputs);
  observe::BannerFacts facts = banner_facts(invocation, settings.resolution(), prepared.datasets, training, learner,
                                            train_feed->loader().stats());
  facts.ranks = std::max<int64_t>(ranks.place().size, options.device.devices.count);
  const std::vector<std::string> of_ranks = notes_of(ranks.place(), options.device.restarts);
  facts.data_notes.insert(facts.data_notes.begin(), of_ranks.begin(), of_ranks.end());  // before what may be left out
  facts.lanes = std::min(options.device.lanes, std::max<int64_t>(1, facts.replicas / facts.ranks));
  const auto end = engine::limit_reached(training.limits, at);
  if (ranks.is_root() && !command.dry_run && !end) {
    training.compute = compute_cost(options, learner, probe_settings(options, *prepared.datasets.train, device),
                                    facts.ranks * facts.lanes);
    facts.compute = compute_text(training.compute, options, data::item_word(*prepared.datasets.train).one);
  }
  facts.caches = prepared.caches.lines;
  facts.memory = plan::plan_summary(memory, prepared.room);
  if (checkpoint.empty()) facts.weights = options.model.init_from;
  facts.start = checkpoint.empty() ? "from scratch"
                : end              ? format("finished with {}", checkpoint)
                                   : format("resumes {} (epoch {}, update {})", checkpoint, at.epoch + 1, at.updates);
  if (extension) facts.data_notes.insert(facts.data_notes.begin(), extension_text(*extension, schedule, at));
  for (const std::string& line : observe::banner_lines(facts)) core::log_info("{}", line);
  for (const std::string& line : observe::banner_details(facts)) core::log_debug("{}", line);
  if (ranks.is_root()) {
    for (const std::string& doubt : doubts_about(configuration, options, *settings.facts().data, prepared.datasets)) {
      core::log_warning("{}", doubt);
    }
  }
  if (command.dry_run) {
    if (ranks.is_root()) refuse_bad_files(options, prepared.datasets, command.all_files);
    return {core::kExitOk, "dry-run"};
  }
  if (ranks.is_root()) take_over_checkpoints(checkpoint, at, checkpoints);
  if (end) {
    core::log_info("already finished ({}): nothing to do in {}; --epochs {} trains further, --fresh starts over",
                   engine::reason_text(*end, ""), run_path, 2 * options.train.epochs);
    Outcome outcome = {core::kExitOk, "already-finished", at.updates, checkpoint};
    add_result(best_metric(training.eval_metric, *prepared.task), at.best_epoch, at.best_value, outcome);
    return outcome;
  }
  std::optional<RunObservers> observing;  // of rank 0, which writes the files of the run
  if (ranks.is_root()) {
    refuse_full_disk(options, memory.checkpoint_bytes, files.directory(), !checkpoint.empty());
    core::write_file_atomically(run_path + "/config.yaml", config::render_yaml(configuration, settings.resolution()),
                                /*durable=*/true);
    keep_network_file(options, run_path);
    write_plan_file(run_path, memory, prepared.room, /*observed=*/std::nullopt);
    observing.emplace(
        ObservedRun{options, settings.facts().machine, *settings.facts().data, prepared.datasets, *prepared.task,
                    device, training.compute, prepared.bfloat16_speed, prepared.other_layout_speed, graphs != nullptr},
        run_path, console);
  }
  engine::Observer nobody;  // what the other ranks tell
  engine::Trainer trainer(
      training, {*prepared.task, learner, *train_feed, *val_feed, schedule, checkpoints,
                 observing ? observing->observer() : nobody, observing ? &observing->between_updates() : nullptr,
                 ranks.group(), graphs.get(), observing ? observing->operators() : nullptr, &split_overlap});
  std::optional<core::MemoryLimit> limit;  // a CPU says that memory has run out only where there is a limit
  if (options.train.auto_micro_batch && device.is_cpu()) limit.emplace();
  const engine::FinishEvent finish = or_leave_device([&] { return trainer.run(at); });
  limit.reset();
  console.clear_live();
  core::log_debug("trained for {:.4f} s", finish.elapsed_seconds);
  if (ranks.is_root()) {
    observing->write_worst_samples();
    write_plan_file(run_path, memory, prepared.room, observed_memory(device));
    say_where_it_is(options, finish, best_metric(training.eval_metric, *prepared.task));
    if (options.run.report) write_report_or_warn(run_path);
  }
  return outcome_of(finish, options.run, best_metric(training.eval_metric, *prepared.task));
}

}  // namespace stoker::app
