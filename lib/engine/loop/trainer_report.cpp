// SPDX-License-Identifier: Apache-2.0
// What the training loop tells its listeners, and the slot in which the run is examined for them.
#include <ATen/ops/cat.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/log.h"
#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"
#include "engine/digest/tensor_digest.h"
#include "engine/loop/trainer.h"
#include "engine/memory/activation_arena.h"

namespace stoker::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kJudgedSeconds = 3;  // of training, before its times say what limits it
constexpr double kSlotShare = 0.005;  // of the run's time, that work between updates may take

}  // namespace

UpdateEvent Trainer::update_event(const RunProgress& at) const {
  return {at.epoch, at.update_in_epoch, at.updates, updater_.sums().images(), at.learning_rate};
}

/// One host sync, however many figures there are.
DeviceFigures Trainer::read_figures() const {
  const torch::Tensor& norm = updater_.gradient_norm();
  const torch::Tensor scale = learner_.scaler->figures();
  std::vector<torch::Tensor> parts = {updater_.sums().figures()};
  if (norm.defined()) parts.push_back(norm.reshape({1}).to(at::kDouble));
  if (scale.defined()) parts.push_back(scale);
  const torch::Tensor host = (parts.size() == 1 ? parts[0] : at::cat(parts)).to(torch::kCPU);
  const double* next = host.data_ptr<double>();
  DeviceFigures figures;
  figures.sums = updater_.sums().read(next);
  next += 2;
  if (norm.defined()) figures.gradient_norm = *next++;
  if (scale.defined()) figures.loss_scale = optim::GradScaler::read(next);
  return figures;
}

/// Brings the epoch's sums from the device into the state, which is about to be saved.
void Trainer::read_sums(RunProgress& at) const { set_epoch_sums(updater_.sums().read(), at); }

void Trainer::report(const RunProgress& at) {
  const DeviceFigures figures = read_figures();
  const SumValues& sums = figures.sums;
  const Clock::time_point now = Clock::now();
  ReportEvent event;
  event.at = update_event(at);
  event.loader = train_feed_.loader().stats();
  const double images = static_cast<double>(std::max<int64_t>(1, sums.images - last_report_.sums.images));
  const double seconds = std::max(1e-9, std::chrono::duration<double>(now - last_report_.begin).count());
  event.train_loss = (sums.loss_sum - last_report_.sums.loss_sum) / images;
  event.train_score = task_.score();
  event.train_score.value = (event.train_score.unit == MetricUnit::percent ? 100 : 1) *
                            (sums.score_sum - last_report_.sums.score_sum) / images;
  event.images_per_second = images / seconds;
  event.data_wait_share = (event.loader.consumer_wait_seconds - last_report_.wait_seconds) / seconds;
  event.elapsed_seconds = core::seconds_since(run_begin_);
  event.times = timer_.since_report();
  event.gradient_norm = figures.gradient_norm;
  event.loss_scale = figures.loss_scale.scale;
  event.skipped_updates = figures.loss_scale.skipped;
  ranks_.read(timer_.since_epoch_began());
  event.ranks = ranks_.since_report();
  timer_.done(StepPart::report);
  const StepTimings judged = timer_.recent(kJudgedSeconds);
  event.found = examine(Interlude::After::report_interval, judged,
                        judged.updates > 0 ? ranks_.recent() : std::vector<RankTimes>(), at);
  judge_graphs(judged);
  timer_.done(StepPart::other);  // what is measured once is no cost of a report
  last_report_ = {sums, event.loader.consumer_wait_seconds, now};
  observer_.on_report(event);
  timer_.done(StepPart::report);
  if (!std::isfinite(event.train_loss)) throw diverged_loss(event.train_loss, at, checkpoints_.files());
  if (learner_.scaler->enabled()) require_learning(figures.loss_scale, settings_.skips, at, checkpoints_);
}

/// In a group each rank has seen its own batches; all of them come here.
void Trainer::tell_digest(const RunProgress& at, ImageDigest& images) {
  updater_.set_watcher(nullptr);
  if (group_) {
    for (const std::string& of_rank : group_->gather(images.message())) images.add_message(of_rank);
  }
  if (!group_ || group_->is_root()) {
    observer_.on_digest({at.epoch, at.updates, tensor_digest(model::state_of(*learner_.model)), images.hex()});
  }
  timer_.done(StepPart::report);
}

EpochEvent Trainer::summarize_epoch(const RunProgress& at) {
  const double seconds = std::max(1e-9, core::seconds_since(epoch_begin_.begin));
  EpochEvent event;
  event.epoch = at.epoch;
  event.updates = at.updates;
  event.images = at.epoch_images;
  event.train_loss = at.epoch_loss_sum / static_cast<double>(std::max<int64_t>(1, at.epoch_images));
  event.learning_rate = at.learning_rate;
  event.train_seconds = seconds;
  event.images_per_second = static_cast<double>(at.epoch_images - epoch_begin_.sums.images) / seconds;
  event.data_wait_share = (train_feed_.loader().stats().consumer_wait_seconds - epoch_begin_.wait_seconds) / seconds;
  event.times = timer_.since_epoch_began();
  ranks_.read(event.times);
  event.ranks = ranks_.since_epoch_began();
  event.working_bytes = activation_arena_held();
  if (event.times.wall_seconds < kJudgedSeconds) judge_graphs(event.times);  // no report could judge within it
  return event;
}

/// The one slot in which others use the learner. A stop request ends their work, not the event that is under way.
Findings Trainer::examine(Interlude::After after, const StepTimings& times, const std::vector<RankTimes>& ranks,
                          const RunProgress& at) {
  if (!between_updates_) return {};
  Interlude interlude;
  interlude.after = after;
  interlude.epoch = at.epoch;
  interlude.is_first_epoch = at.epoch == start_.start_epoch;
  interlude.epochs_left = start_.epochs - 1 - at.epoch;
  interlude.times = times;
  interlude.ranks = ranks;
  interlude.seconds_allowed = core::stop_requested() ? 0 : slot_seconds_left(at);
  const Clock::time_point begin = Clock::now();
  Findings found;
  try {
    found = between_updates_->run(learner_, interlude);
  } catch (const core::StopRequested&) {
  }
  seconds_in_slot_ += core::seconds_since(begin);
  return found;
}

/// What is found is done from the next update on.
void Trainer::judge_graphs(const StepTimings& window) {
  if (!settings_.tries_graphs || !updater_.graph() || graph_trial_.is_decided()) return;
  const bool uses = graph_trial_.judge(window) && !updater_.graph()->has_given_up();
  updater_.use_graphs(uses);
  if (!graph_trial_.is_decided() || updater_.graph()->has_given_up()) return;
  core::log_info("graphs are {}: an update takes {:.3g} ms with them, {:.3g} ms without", uses ? "used" : "not used",
                 1e3 * graph_trial_.replayed_seconds(), 1e3 * graph_trial_.launched_seconds());
}

/// Of the time that the run will take at its speed so far: what is worth measuring is worth it early, while memory
/// still grows.
double Trainer::slot_seconds_left(const RunProgress& at) const {
  const auto done = static_cast<double>(at.updates - start_.start_updates);
  const auto asked = static_cast<double>(start_.total_updates - start_.start_updates);
  const double expected = core::seconds_since(run_begin_) * std::max(1.0, asked / std::max(1.0, done));
  return kSlotShare * expected - seconds_in_slot_;
}

}  // namespace stoker::engine
