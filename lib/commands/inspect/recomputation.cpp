// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/recomputation.h"

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "train/setup/assemble.h"
#include "train/setup/network_file.h"
#include "train/setup/resume.h"
#include "train/setup/teacher.h"

namespace stoker::train {
namespace {

constexpr uint64_t kMaxRecordedConfigBytes = 16 << 20;

/// The options of the run as if they had been written, those of its device among them; flags win over them.
std::unique_ptr<config::Configuration> configuration_of(const config::CommandLine& line, const std::string& path) {
  const std::string text = core::read_file(path, kMaxRecordedConfigBytes);
  auto given = std::make_unique<config::Configuration>();
  config::read_run_config(text, path, *given);
  config::Configuration run;
  std::vector<std::string> problems;  // there were none above
  config::read_yaml(text, path, config::Origin::Kind::run, run.table, problems);
  const auto take = [](config::Row& own, config::Table& table, const config::Row& theirs) {
    if (theirs.origin.kind == config::Origin::Kind::run) table.set(own, theirs.render(), theirs.origin);
  };
  config::DeviceOptions &own = given->options.device, &theirs = run.options.device;  // bits depend on them
  take(given->table.row_of(own.device), given->table, run.table.row_of(theirs.device));
  take(given->table.row_of(own.threads), given->table, run.table.row_of(theirs.threads));
  config::parse_options(line, *given);
  return given;
}

}  // namespace

std::string changed_libraries(const RecordedRun& run, int64_t update, const config::ResolvedOptions& options) {
  auto checkpoint = run.checkpoints.lower_bound(update);
  if (checkpoint == run.checkpoints.end()) {
    if (run.checkpoints.empty()) return "";
    --checkpoint;
  }
  const core::Json then = engine::read_lineage(checkpoint->second).program, now = program_facts(options);
  std::string text;
  for (const char* const what : {"images", "libtorch", "processor"}) {
    const auto before = then.is_object() ? then.find(what) : then.end();
    if (before == then.end() || !before->is_string() || *before == now.at(what)) continue;
    text += core::format("{}{} then, {} now", text.empty() ? "" : "; ", before->get<std::string>(),
                         now.at(what).get<std::string>());
  }
  return text;
}

Recomputation::Recomputation(const config::CommandLine& line, const RecordedRun& run, const std::string& checkpoint,
                             int64_t to)
    : given_(configuration_of(line, run.config_path(to))) {
  use_kept_network_file(run.path, *given_);
  if (!checkpoint.empty()) use_network_file_of_run(checkpoint, engine::read_manifest(checkpoint).extra, *given_);
  settings_.emplace(*given_);
  if (!checkpoint.empty()) settings_->learn(&config::Facts::checkpoint, checkpoint_facts(checkpoint));
  set_up_data(*settings_, /*measure=*/false, prepared_);
  set_up_training(*settings_, /*resumes=*/!checkpoint.empty(), prepared_);
  const config::ResolvedOptions& options = settings_->options();
  engine::Learner& learner = prepared_.learner;
  checkpoints_.emplace(engine::Checkpoints::Settings{run.path + "/checkpoints"},
                       identity_of(options, prepared_.datasets, learner.started_from));
  feed_ = training_feed(options, prepared_.datasets.train, learner.device);
  keep_teacher_outputs(options, prepared_.datasets, JoinedRanks(), run.path, /*may_write=*/false, learner);
  plan_ = plan_epoch(options, feed_->loader());
  schedule_.emplace(options.schedule, options.optim.lr, options.train.epochs * plan_.updates(), plan_.updates());
  at_ = start_or_resume(checkpoint, *checkpoints_, learner, feed_->loader(), options.run.override_resume);
  const int64_t left = options.train.epochs - at_.epoch;
  if (at_.update_in_epoch > plan_.updates() || left < 0 || left * plan_.updates() < at_.update_in_epoch ||
      (!checkpoint.empty() && engine::read_manifest(checkpoint).updates != at_.updates)) {
    throw core::Error(
        core::ErrorKind::data,
        core::format("{}: its state is of epoch {}, update {} of it and {} in all, which this run does not have",
                     core::printable(checkpoint), at_.epoch + 1, at_.update_in_epoch, at_.updates),
        "use another checkpoint");
  }
  last_update_ = at_.updates + left * plan_.updates() - at_.update_in_epoch;
  updater_.emplace(updater_settings(options, precision_of(options, learner.device), plan_.updates()), *prepared_.task,
                   learner);
  updater_->set_micro_batches(at_.micro_batches);
  // Evaluations are not computed again: when they lowered the rate is recorded in every later checkpoint.
  if (options.schedule.sched == config::ScheduleKind::plateau && !run.checkpoints.empty()) {
    rate_cuts_ = engine::read_progress(run.checkpoints.rbegin()->second).rate_cuts;
  }
  batches_.emplace(*feed_);
}

void Recomputation::begin_epoch() {
  if (at_.update_in_epoch ==
      plan_.updates()) {  // what follows is the next one; a checkpoint may lie before its validation
    at_.begin_next_epoch();
    is_in_epoch_ = false;
  }
  if (is_in_epoch_) return;
  prepared_.learner.model->train();
  updater_->sums().restore(engine::epoch_sums(at_));
  batches_->begin_epoch(at_.epoch, engine::own_batches_before(plan_, {}, at_.update_in_epoch));
  is_in_epoch_ = true;
}

void Recomputation::advance(engine::StepWatcher* watcher) {
  require_update(at_.updates + 1);
  begin_epoch();
  engine::UpdateWindow window = plan_.window(at_.epoch, at_.update_in_epoch);
  window.number = at_.updates;
  const int64_t cuts = std::upper_bound(rate_cuts_.begin(), rate_cuts_.end(), at_.updates) - rate_cuts_.begin();
  const optim::UpdateRates rates = schedule_->rates_at(at_.schedule_update(plan_.updates()), cuts);
  updater_->set_watcher(watcher);
  const int64_t images = updater_->update(*batches_, window, rates);
  updater_->set_watcher(nullptr);
  at_.add_update(images, rates.lr, updater_->micro_batches());
}

void Recomputation::require_update(int64_t number) const {
  if (number <= last_update_) return;
  throw core::Error(core::ErrorKind::data,
                    core::format("update {} is none of this run: its options end it after {}", number, last_update_),
                    "restore its files, or name an update of the run");
}

void Recomputation::advance_to(int64_t updates) {
  require_update(updates);
  while (at_.updates < updates) advance();
}

void Recomputation::measure_statistics() {
  const std::vector<engine::UpdateWindow> windows =
      engine::statistics_windows(plan_, options().train.epochs, options().model.precise_bn);
  if (!windows.empty()) updater_->measure_statistics(*batches_, windows);
}

engine::RunProgress Recomputation::at() const {
  engine::RunProgress state = at_;
  if (is_in_epoch_) engine::set_epoch_sums(updater_->sums().read(), state);
  return state;
}

core::Json Recomputation::preprocess() const {
  return config::to_json(preprocessing_for(options(), *prepared_.datasets.train));
}

std::vector<std::string> Recomputation::differences(const std::string& checkpoint) const {
  return checkpoints_->differences(checkpoint);
}

}  // namespace stoker::train
