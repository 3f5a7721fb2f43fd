// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/recomputation.h"

#include "core/system/file.h"
#include "train/setup/assemble.h"
#include "train/setup/identity.h"
#include "train/setup/network_file.h"
#include "train/setup/resume.h"

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

Recomputation::Recomputation(const config::CommandLine& line, const RecordedRun& run, const std::string& checkpoint,
                             int64_t to)
    : given_(configuration_of(line, run.config_path(to))) {
  use_kept_network_file(run.path, *given_);
  if (!checkpoint.empty()) use_network_file_of_run(checkpoint, engine::read_manifest(checkpoint).extra, *given_);
  settings_.emplace(*given_);
  if (!checkpoint.empty()) settings_->learn_checkpoint(checkpoint_facts(checkpoint));
  set_up_data(*settings_, /*measure=*/false, prepared_);
  set_up_training(*settings_, /*resumes=*/!checkpoint.empty(), prepared_);
  const config::ResolvedOptions& options = settings_->options();
  engine::Learner& learner = prepared_.learner;
  checkpoints_.emplace(engine::Checkpoints::Settings{run.path + "/checkpoints"},
                       identity_of(options, prepared_.datasets));
  feed_ = training_feed(options, prepared_.datasets.train, learner.device);
  plan_ = plan_epoch(options, feed_->loader());
  schedule_.emplace(options.schedule, options.optim.lr, options.train.epochs * plan_.updates(), plan_.updates());
  at_ = start_or_resume(checkpoint, *checkpoints_, learner, feed_->loader(), options.run.override_resume);
  updater_.emplace(updater_settings(options, precision_of(options, learner.device)), *prepared_.task, learner);
  updater_->set_micro_batches(at_.micro_batches);
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
  begin_epoch();
  engine::UpdateWindow window = plan_.window(at_.epoch, at_.update_in_epoch);
  window.number = at_.updates;
  const optim::UpdateRates rates = schedule_->rates_at(at_.updates);
  updater_->set_watcher(watcher);
  const int64_t images = updater_->update(*batches_, window, rates);
  updater_->set_watcher(nullptr);
  at_.add_update(images, rates.lr, updater_->micro_batches());
}

void Recomputation::go_to(int64_t updates) {
  while (at_.updates < updates) advance();
}

engine::RunProgress Recomputation::at() const {
  engine::RunProgress state = at_;
  if (is_in_epoch_) engine::set_epoch_sums(updater_->sums().read(), state);
  return state;
}

std::vector<std::string> Recomputation::differences(const std::string& checkpoint) const {
  return checkpoints_->differences(checkpoint);
}

}  // namespace stoker::train
