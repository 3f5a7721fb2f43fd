// SPDX-License-Identifier: Apache-2.0
#include "commands/train/train.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "commands/command.h"
#include "commands/train/check_data_files.h"
#include "commands/train/run_end.h"
#include "commands/train/run_journal.h"
#include "config/table/parse_value.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "data/open_datasets.h"
#include "engine/device/device.h"
#include "engine/loop/run_telemetry.h"
#include "model/freeze.h"
#include "observe/observers/banner.h"
#include "observe/observers/console.h"
#include "observe/observers/progress.h"
#include "plan/memory_plan.h"
#include "proof/standing.h"
#include "train/failure/end_command.h"
#include "train/failure/result_output.h"
#include "train/launch/joined_ranks.h"
#include "train/observers/observing.h"
#include "train/process/failure.h"
#include "train/setup/assemble.h"
#include "train/setup/compute_choices.h"
#include "train/setup/loader_tuning.h"
#include "train/setup/network_file.h"
#include "train/setup/option_warnings.h"
#include "train/setup/plan_run.h"
#include "train/setup/resume.h"
#include "train/setup/run_directory.h"
#include "train/setup/run_setup.h"
#include "train/setup/settings.h"
#include "train/setup/teacher.h"
#include "train/work_on_devices.h"

namespace stoker::train {
namespace {

// `train` in one process, which may be one of several.

using core::Error;
using core::ErrorKind;
using core::format;

/// Batches of one that skipping bad images leaves are left out while the run continues; planned ones are refused.
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

/// How many checkpoints a run still writes at most.
int64_t saves_left(const config::ResolvedOptions& options, const engine::EpochPlan& plan,
                   const engine::RunLimits& limits, const engine::RunProgress& at) {
  const int64_t updates = std::max<int64_t>(0, engine::total_updates(plan, limits) - at.updates);
  const int64_t per_epoch = std::max<int64_t>(1, plan.updates());
  const int64_t epochs = std::max<int64_t>(1, (updates + at.update_in_epoch + per_epoch - 1) / per_epoch);
  int64_t saves = epochs;
  for (const config::Interval& every : {options.run.save_every, options.train.val_every}) {
    const bool is_share = every.unit == config::Interval::Unit::epochs && every.amount < 1;
    if (is_share || every.unit == config::Interval::Unit::seconds) return std::numeric_limits<int64_t>::max();
    if (every.unit == config::Interval::Unit::updates) saves += updates / std::llround(every.amount);
  }
  return saves;
}

/// The options that make a run keep more checkpoints than it must, as advice.
std::string fewer_checkpoints(const config::ResolvedRunOptions& options) {
  std::string advice;
  if (options.keep_last > 2) advice += "lower --keep-last, ";
  if (options.keep_every.unit != config::Interval::Unit::never) advice += "keep fewer with --keep-every, ";
  if (options.average_last > 0) advice += "lower --average-last, ";
  return advice;
}

/// Requires space for all checkpoints that the run keeps and writes, and the one that is written before an old one is
/// removed.
void refuse_full_disk(const config::ResolvedOptions& options, int64_t checkpoint_bytes,
                      const engine::CheckpointFiles& files, int64_t saves, int64_t kept) {
  const std::string& directory = files.directory();
  const int64_t missing = plan::most_checkpoints(options.run) + kept - static_cast<int64_t>(files.list().size());
  const int64_t count = std::min(std::max<int64_t>(1, missing), saves);
  const auto available = static_cast<double>(core::free_bytes(directory));
  const double needed = static_cast<double>(checkpoint_bytes) * static_cast<double>(count);
  if (!options.run.space_check || available <= 0 || available >= needed) return;
  throw Error(ErrorKind::cannot_create,
              format("the disk under {} has {} free; {} of {} need {}", directory, core::bytes_text(available),
                     core::counted(count, "checkpoint"), core::bytes_text(static_cast<double>(checkpoint_bytes)),
                     core::bytes_text(needed)),
              "free some space, choose another --run-dir, " + fewer_checkpoints(options.run) +
                  "or continue anyway with --no-space-check");
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

/// The learning rate of a run that is extended.
std::string extension_text(const Extension& extension, const optim::Schedule& schedule, const engine::RunProgress& at) {
  return format(
      "extends the run from {} to {} epochs: the schedule now spans all {}, the learning rate continues at {:.4g} "
      "(it had ended at {:.4g})",
      extension.epochs_before, extension.epochs, extension.epochs, schedule.at(at.updates, at.num_rate_cuts()),
      at.learning_rate);
}

/// A run of this process, phase by phase. Each is called once, in this order, by all ranks.
class TrainingRun {
 public:
  TrainingRun(const Context& context, const TrainFlags& flags, const JoinedRanks& ranks)
      : context_(context),
        flags_(flags),
        ranks_(ranks),
        given_(context.configuration),
        only_shows_(flags.dry_run || given_.flags.print_config),
        settings_(given_, share_of_machine(ranks.place()), ranks.place().size),
        options_(settings_.options()),
        console_(options_.log.quiet || !ranks.is_root(), observe::shown_progress(options_.log.progress)),
        files_(options_.run.run_dir + "/checkpoints"),
        journal_(ranks, options_.run.run_dir) {}

  /// The run directory, its log, and the data.
  void set_up();
  Outcome print_config();
  void announce_known();
  /// Chooses the checkpoint to continue from, proves the libraries, measures and chooses what is automatic.
  void measure_and_prove();
  /// Refuses what does not fit, what other ranks see otherwise, and to continue from another run.
  void refuse();
  /// Feeds, and the learner as it was saved.
  void build();
  void announce();
  Outcome dry_run() const;
  Outcome already_finished() const;
  bool has_ended() const { return end_ && !lacks_average_; }
  /// Makes the run directory agree with where the run continues.
  void claim();
  engine::FinishEvent train();
  Outcome wrap_up(const engine::FinishEvent& finish);

 private:
  engine::Metric best() const { return best_metric(training_.eval_metric, *prepared_.task); }
  observe::BannerFacts facts_of_banner();
  void learn_of_checkpoint(const std::string& path);

  const Context& context_;
  const TrainFlags& flags_;
  const JoinedRanks& ranks_;
  config::Configuration& given_;
  const bool only_shows_;
  Settings settings_;
  const config::ResolvedOptions& options_;
  observe::Console console_;
  engine::CheckpointFiles files_;
  RunJournal journal_;
  RunSetup prepared_;
  std::unique_ptr<JobEnd> job_end_;  ///< nullptr: not known, or another rank looks at it
  std::optional<engine::SplitOverlap> split_overlap_;
  std::vector<std::string> known_;  ///< lines of the banner that are printed before anything is measured
  std::string checkpoint_;          ///< to continue from; empty: from scratch
  std::optional<Extension> extension_;
  std::optional<engine::Checkpoints> checkpoints_;
  engine::Checkpoints::Kept kept_;
  plan::MemoryPlan memory_;
  std::unique_ptr<engine::GraphRunner> graphs_;
  std::unique_ptr<data::DeviceFeed> train_feed_, val_feed_;
  engine::RunProgress at_;
  engine::TrainerSettings training_;
  std::optional<optim::Schedule> schedule_;
  std::optional<engine::StopReason> end_;  ///< why there is nothing left to do
  bool lacks_average_ = false;             ///< but to average the last checkpoints
};

void TrainingRun::set_up() {
  if (ranks_.is_root() && !only_shows_) job_end_ = job_end_of_environment();
  if (!only_shows_) journal_.open(flags_.fresh && ranks_.place().attempt == 0);
  refuse_unequal_commands(ranks_, given_);
  if (!ranks_.is_root()) {  // rank 0 measures and chooses; this one does the same
    checkpoint_ = ranks_.from_root([] { return ""; });
    adopt_options(ranks_, given_);
    settings_.on_options_changed();
  }
  set_up_data(settings_, /*measure=*/!only_shows_, prepared_);
}

Outcome TrainingRun::print_config() {
  if (options_.run.resume != "none" && !flags_.fresh && !files_.list().empty()) {
    learn_of_checkpoint(choose_checkpoint(options_.run, files_, /*is_restart=*/false, /*is_fresh=*/false));
  }
  if (!settings_.resolution().waits_for_batch) {
    add_caches(settings_, settings_.facts().machine, prepared_.datasets,
               batch_buffer_bytes(options_, *prepared_.datasets.train));
  }
  write_result("-", config::render_yaml(given_, settings_.resolution()));
  return {core::kExitOk, ""};
}

void TrainingRun::announce_known() {
  known_ = observe::known_lines(known_facts(context_, options_, prepared_.datasets));
  for (const std::string& line : known_) core::log_info("{}", line);
}

void TrainingRun::learn_of_checkpoint(const std::string& path) {
  settings_.learn(&config::Facts::checkpoint, checkpoint_facts(path));
  settings_.set_model_facts();  // the network may be that of the checkpoint
}

void TrainingRun::measure_and_prove() {
  split_overlap_.emplace(prepared_.datasets.train, prepared_.datasets.val);
  if (ranks_.is_root()) {
    checkpoint_ = ranks_.from_root([&] {
      if (!only_shows_) files_.prepare();
      const bool is_restart = ranks_.place().attempt > 0;
      const std::string chosen = choose_checkpoint(options_.run, files_, is_restart, flags_.fresh);
      if (!chosen.empty()) learn_of_checkpoint(chosen);
      if (!chosen.empty()) refuse_known_other_run(chosen, settings_.resolution(), prepared_.datasets);
      return chosen;
    });
  } else if (!checkpoint_.empty()) {
    learn_of_checkpoint(checkpoint_);
  }
  set_up_training(settings_, /*resumes=*/!checkpoint_.empty(), prepared_, share_of_run(ranks_));
  if (ranks_.is_root()) publish_options(ranks_, options_);
  memory_ = plan::make_memory_plan(prepared_.inputs);
}

void TrainingRun::refuse() {
  plan::require_enough_memory(prepared_.inputs, prepared_.budget, options_.run.plan_check);
  const engine::RunIdentity identity =
      identity_of(options_, prepared_.datasets, prepared_.learner.started_from, ranks_.place().size);
  refuse_unequal_ranks(ranks_, identity);
  checkpoints_.emplace(checkpoint_settings(options_, files_.directory()), identity);
  if (checkpoint_.empty()) return;
  extension_ = extension_of(checkpoint_, options_.train.epochs);
  refuse_other_run(*checkpoints_, checkpoint_, options_, extension_);
}

void TrainingRun::build() {
  const torch::Device device = prepared_.learner.device;
  graphs_ = graph_runner_for(options_, device);
  train_feed_ = training_feed(options_, prepared_.datasets.train, device, ranks_.share());
  val_feed_ = evaluation_feed(options_, prepared_.datasets.val, device, ranks_.share(), /*is_repeated=*/true);
  const engine::EpochPlan plan = plan_epoch(options_, train_feed_->loader());
  refuse_batch_of_one(options_, plan, *prepared_.datasets.train, prepared_.learner);
  at_ = start_or_resume(checkpoint_, *checkpoints_, prepared_.learner, train_feed_->loader(),
                        options_.run.override_resume);
  release_freed_memory();  // a checkpoint was read into it
  training_ = trainer_settings(options_, plan, precision_of(options_, device), at_.train_seconds);
  kept_ = kept_checkpoints(options_, plan);
  checkpoints_->keep(kept_);
  training_.telemetry.backend = proof::summary_text(proof::standing());
  training_.telemetry.items = data::sample_noun(*prepared_.datasets.train).several;
  schedule_.emplace(options_.schedule, options_.optim.lr, options_.train.epochs * plan.updates(), plan.updates());
  end_ = engine::limit_reached(training_.limits, at_);
  const auto average_is_there = [&] {
    const std::vector<int64_t> of = checkpoints_->to_average(at_.updates);
    return std::string(of.empty() || checkpoints_->has_average(of) ? "yes" : "no");
  };
  lacks_average_ = end_ && ranks_.from_root(average_is_there) == "no";
}

observe::BannerFacts TrainingRun::facts_of_banner() {
  observe::BannerFacts facts = banner_facts(context_, settings_.resolution(), prepared_.datasets, training_,
                                            prepared_.learner, train_feed_->loader().stats());
  facts.ranks = std::max<int64_t>(ranks_.place().size, options_.device.devices.count);
  const std::vector<std::string> of_ranks = notes_of(ranks_.place(), options_.device.restarts);
  facts.data_notes.insert(facts.data_notes.begin(), of_ranks.begin(), of_ranks.end());  // before what may be left out
  if (ranks_.is_root() && !flags_.dry_run && !end_) {
    const engine::ProbeSettings probe = probe_settings(options_, *prepared_.datasets.train, prepared_.learner.device);
    training_.telemetry.compute = compute_cost(options_, prepared_.learner, probe, facts.ranks);
    facts.compute =
        compute_text(training_.telemetry.compute, options_, data::sample_noun(*prepared_.datasets.train).one);
  }
  facts.caches = prepared_.caches.lines;
  facts.memory = plan::plan_summary(memory_, prepared_.budget);
  if (const engine::StartingWeights& from = prepared_.learner.started_from; !from.sha256.empty()) {
    facts.weights = format("{} (SHA-256 {}...)", core::printable(from.file), from.sha256.substr(0, 12));
  }
  facts.start = checkpoint_.empty() ? "from scratch"
                : end_              ? format("finished with {}", checkpoint_)
                       : format("resumes {} (epoch {}, update {})", checkpoint_, at_.epoch + 1, at_.updates);
  if (job_end_) facts.data_notes.insert(facts.data_notes.begin(), job_end_->text());
  if (extension_) facts.data_notes.insert(facts.data_notes.begin(), extension_text(*extension_, *schedule_, at_));
  return facts;
}

void TrainingRun::claim() {
  if (checkpoint_.empty()) return;
  const std::string at = ranks_.from_root([&] {
    adopt_checkpoints(checkpoint_, !end_, at_, *checkpoints_);
    return at_.to_json().dump();
  });
  if (!ranks_.is_root()) at_ = engine::RunProgress::from_json(core::parse_json(at, "rank 0"), "rank 0");
}

void TrainingRun::announce() {
  const observe::BannerFacts facts = facts_of_banner();
  for (const std::string& line : observe::banner_lines(facts)) {
    if (std::find(known_.begin(), known_.end(), line) == known_.end()) core::log_info("{}", line);
  }
  for (const std::string& line : observe::banner_details(facts)) core::log_debug("{}", line);
  if (!ranks_.is_root()) return;
  for (const std::string& warning : lint_options(given_, options_, *settings_.facts().data, prepared_.datasets)) {
    core::log_warning("{}", warning);
  }
}

Outcome TrainingRun::dry_run() const {
  if (ranks_.is_root()) refuse_bad_files(options_, prepared_.datasets, flags_.all_files);
  return {core::kExitOk, "dry-run"};
}

Outcome TrainingRun::already_finished() const {
  using Reason = engine::StopReason;
  const config::ResolvedTrainOptions& train = options_.train;
  const std::string further = *end_ == Reason::max_updates      ? format("--max-updates {}", 2 * train.max_updates)
                              : *end_ == Reason::no_improvement ? format("--patience {}", 2 * train.patience)
                                                                : format("--epochs {}", 2 * train.epochs);
  core::log_info("already finished ({}): nothing to do in {}; {} trains further, --fresh starts over",
                 engine::reason_text(*end_, ""), options_.run.run_dir, further);
  Outcome outcome = {core::kExitOk, "already-finished", at_.updates, checkpoint_};
  add_result(best(), at_.best.epoch, at_.best.value, outcome);
  return outcome;
}

engine::FinishEvent TrainingRun::train() {
  const torch::Device device = prepared_.learner.device;
  if (ranks_.is_root()) {
    refuse_unfit_data(options_, prepared_.datasets);
    refuse_full_disk(options_, memory_.checkpoint_bytes, files_,
                     saves_left(options_, training_.plan, training_.limits, at_),
                     kept_.every > 0 ? engine::total_updates(training_.plan, training_.limits) / kept_.every : 0);
  }
  journal_.begin(
      {options_, settings_.facts().machine, *settings_.facts().data, prepared_.datasets, *prepared_.task, device,
       training_.telemetry.compute, prepared_.bfloat16_speed, prepared_.other_layout_speed, graphs_ != nullptr},
      given_, settings_.resolution(), memory_, prepared_.budget, console_);
  keep_teacher_outputs(options_, prepared_.datasets, ranks_, options_.run.run_dir, /*may_write=*/true,
                       prepared_.learner);
  engine::StepTimer timer(device, train_feed_->loader());
  engine::Updater updater(training_.updater, *prepared_.task, prepared_.learner, &timer, ranks_.group(), graphs_.get());
  engine::Observers observers;
  observers.add(journal_.observer());
  if (job_end_) observers.add(*job_end_);
  engine::RunTelemetry telemetry(training_.telemetry,
                                 {updater, timer, train_feed_->loader(), ranks_.group(), observers,
                                  journal_.between_updates(), journal_.operators(device), *split_overlap_});
  engine::Trainer trainer(training_,
                          {updater, *train_feed_, *val_feed_, *schedule_, *checkpoints_, ranks_.group(), telemetry});
  std::optional<core::MemoryLimit> limit;  // a CPU reports that memory has run out only where there is a limit
  if (options_.train.auto_micro_batch && device.is_cpu()) limit.emplace();
  return run_or_exit_on_device_failure([&] { return trainer.run(at_); });
}

Outcome TrainingRun::wrap_up(const engine::FinishEvent& finish) {
  console_.clear_live();
  core::log_debug("trained for {:.4f} s", finish.elapsed_seconds);
  journal_.end(memory_, prepared_.budget, prepared_.learner);
  if (ranks_.is_root()) {
    log_run_summary(options_, finish, best(), console_);
    if (options_.run.report) write_report_or_warn(options_.run.run_dir);
  }
  return outcome_of(finish, options_.run, best());
}

/// Trains from scratch or from a checkpoint. Rank 0 writes the files of the run; the others keep a log of their own.
Outcome train_as_rank(const Context& context, const TrainFlags& flags, const JoinedRanks& ranks) {
  const bool only_prints = context.configuration.flags.print_config;
  number_run_dir(context.configuration, ranks, /*make=*/!only_prints && !flags.dry_run);
  TrainingRun run(context, flags, ranks);
  run.set_up();
  if (only_prints) return run.print_config();
  run.announce_known();
  run.measure_and_prove();
  run.refuse();
  run.build();
  run.announce();
  if (flags.dry_run) return run.dry_run();
  run.claim();
  if (run.has_ended()) return run.already_finished();
  return run.wrap_up(run.train());
}

using core::Error;
using core::ErrorKind;
using core::format;

/// A recipe would train the example that options alone train.
void require_named_data(const config::Configuration& given) {
  const auto is_named = [&](const auto& field) {
    return given.table.row_of(field).origin.kind != config::Origin::Kind::built_in;
  };
  if (is_named(given.options.data.data_dir) || is_named(given.options.data.dataset)) return;
  const config::CommonFlags& flags = given.flags;
  throw Error(
      ErrorKind::config,
      format("{} names no data", flags.config_files.empty() ? "preset " + flags.preset : flags.config_files.back()),
      "add --data-dir FOLDER, or data-dir: FOLDER to the file");
}

}  // namespace

std::string run_directory_of(const config::Configuration& configuration) {
  try {
    return Settings(configuration).options().run.run_dir;
  } catch (const Error&) {
    return "";
  }
}

Outcome train_network(const Context& given, const TrainFlags& flags) {
  const std::unique_ptr<config::Configuration> resumed = options_of_resumed(given.line, given.configuration);
  const Context context = {given.argc, given.argv, given.line, resumed ? *resumed : given.configuration};
  config::Options& options = context.configuration.options;
  if (resumed) given.configuration.options.run.run_dir = options.run.run_dir;  // for --on-end
  if (flags.fresh && options.run.resume != "auto") {
    throw Error(ErrorKind::usage,
                format("--fresh starts over, but --resume {} continues", config::shown(options.run.resume)),
                "leave one of them out");
  }
  const bool only_shows = context.configuration.flags.print_config;
  if (!flags.dry_run && !only_shows) prepare_end_command(flags.on_end, options);
  if (only_shows) return train_as_rank(context, flags, JoinedRanks());
  require_named_data(context.configuration);
  const config::Auto<int64_t>& replicas = options.train.replicas;
  const auto require_divisor = [&](int ranks, const std::string& who) {
    if (replicas.is_auto() || replicas.value() % ranks == 0) return;
    throw Error(
        ErrorKind::config, format("replicas {} is not a multiple of {}: each computes as many", replicas.value(), who),
        format(
            "choose a number of processes that divides {}; a new run may have --replicas {}, or no --replicas for one "
            "per process",
            replicas.value(), (replicas.value() / ranks + 1) * ranks));
  };
  return work_on_devices(
      context.argv, options, [&](const JoinedRanks& ranks) { return train_as_rank(context, flags, ranks); },
      flags.dry_run, require_divisor);
}

}  // namespace stoker::train
