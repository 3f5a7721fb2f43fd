// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/run_telemetry.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/log.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "engine/device/without_sync.h"
#include "engine/digest/tensor_digest.h"
#include "engine/group/message.h"
#include "engine/memory/activation_arena.h"

namespace stoker::engine {
namespace {

std::string bytes_of(const RankTotals& totals) {
  MessageWriter message;
  message.add(totals.host);
  message.add(totals.updates);
  for (const double seconds : {totals.update, totals.wait, totals.exchange, totals.records, totals.least_exchange})
    message.add(seconds);
  return message.bytes();
}

RankTotals totals_from(const std::string& bytes) {
  MessageReader message(bytes);
  RankTotals totals;
  totals.host = message.string();
  totals.updates = message.i64();
  for (double* const seconds :
       {&totals.update, &totals.wait, &totals.exchange, &totals.records, &totals.least_exchange}) {
    *seconds = message.f64();
  }
  return totals;
}

}  // namespace

RankLedger::RankLedger(Group& group) : group_(group), host_(core::host_name()) {}

void RankLedger::begin_epoch() {
  least_exchange_ = 0;
  now_.clear();
  at_report_.clear();
  at_recent_.clear();
}

void RankLedger::read(const StepTimings& so_far) {
  if (group_.is_alone()) return;  // there is no rank to compare with
  const auto total = [&](StepPart part) {
    return so_far.parts[part].mean_seconds * static_cast<double>(so_far.updates);
  };
  RankTotals own;
  own.host = host_;
  own.updates = so_far.updates;
  own.update = so_far.seconds;
  own.wait = total(StepPart::wait);
  own.exchange = total(StepPart::exchange);
  own.least_exchange = least_exchange_;
  own.records = total(StepPart::report) + total(StepPart::save);
  now_.clear();
  for (const std::string& of_rank : group_.gather(bytes_of(own))) now_.push_back(totals_from(of_rank));
}

std::vector<RankTimes> RankLedger::since_report() { return rank_times(now_, std::exchange(at_report_, now_)); }

std::vector<RankTimes> RankLedger::recent() { return rank_times(now_, std::exchange(at_recent_, now_)); }

std::vector<RankTimes> RankLedger::since_epoch_start() const { return rank_times(now_, {}); }

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kJudgedSeconds = 3;  // of training, before its times show what limits it
constexpr double kSlotShare = 0.005;  // of the run's time, that work between updates may take

}  // namespace

/// The figures of training that the host reads, in one read.
struct RunTelemetry::Figures {
  SumValues sums;
  double gradient_norm = -1;         ///< -1: not measured
  optim::LossScale loss_scale = {};  ///< zeros without a loss scaler
};

void RunTelemetry::start_run(const RunProgress& at, const EpochPlan& plan, const RunLimits& limits) {
  start_ = {limits.epochs,     plan.updates(), total_updates(plan, limits),     plan.images,
            at.epoch,          at.updates,     parts_.updater.task().metrics(), settings_.compute,
            settings_.backend, settings_.items};
  start_.evaluated_updates = at.evaluated_updates;
  parts_.observer.on_start(start_);
  if (at.epoch > 0) parts_.split_overlap.stop();
}

void RunTelemetry::start_epoch() {
  epoch_begin_ =
      last_report_ = {parts_.updater.sums().read(), parts_.loader.stats().consumer_wait_seconds, Clock::now()};
  parts_.timer.begin_epoch();
  ranks_.begin_epoch();
}

void RunTelemetry::watch(const UpdateWindow& window, const std::function<void()>& update) {
  digest_.reset();
  if (digest_due(settings_.digest_every, window.number + 1)) digest_.emplace();
  parts_.updater.set_watcher(digest_ ? &*digest_ : nullptr);
  // Digests are read at once, and what replicas and ranks exchange passes through the host.
  const bool waits_for_device = digest_ || window.replicas > 1;
  parts_.operators.update([&] { waits_for_device ? update() : without_sync(parts_.updater.learner().device, update); });
}

void RunTelemetry::on_update(const RunProgress& at) {
  if (digest_) on_digest(at);
  parts_.observer.on_update(update_event(at));
  parts_.timer.done(StepPart::other);
}

/// Each rank has seen its own batches; all of them come here.
void RunTelemetry::on_digest(const RunProgress& at) {
  parts_.updater.set_watcher(nullptr);
  for (const std::string& of_rank : parts_.group.gather(digest_->message())) digest_->add_message(of_rank);
  if (parts_.group.is_root()) {
    const std::string weights = tensor_digest(model::state_of(*parts_.updater.learner().model));
    parts_.observer.on_digest({at.epoch, at.updates, weights, digest_->hex()});
  }
  parts_.timer.done(StepPart::report);
}

UpdateEvent RunTelemetry::update_event(const RunProgress& at) const {
  return {at.epoch, at.update_in_epoch, at.updates, parts_.updater.sums().images(), at.learning_rate};
}

double RunTelemetry::waited_for_ranks() {
  exchanged_ = parts_.timer.seconds_so_far(StepPart::exchange);
  return exchanged_ + decision_waited_;
}

/// Waiting for other ranks meanwhile counts as exchange.
void RunTelemetry::on_decision(const Decision& decision) {
  if (parts_.group.is_alone()) return;  // no part of its time
  parts_.timer.done(StepPart::exchange);
  decision_waited_ = parts_.timer.seconds_so_far(StepPart::exchange) - exchanged_;
  ranks_.add_exchange(decision.waited);
}

/// One host sync, however many figures there are.
RunTelemetry::Figures RunTelemetry::read_figures() const {
  const torch::Tensor& norm = parts_.updater.gradient_norm();
  const torch::Tensor scale = parts_.updater.learner().scaler->figures();
  std::vector<torch::Tensor> tensors = {parts_.updater.sums().figures()};
  if (norm.defined()) tensors.push_back(norm.reshape({1}).to(at::kDouble));
  if (scale.defined()) tensors.push_back(scale);
  const torch::Tensor host = (tensors.size() == 1 ? tensors[0] : at::cat(tensors)).to(torch::kCPU);
  const double* next = host.data_ptr<double>();
  Figures figures;
  figures.sums = parts_.updater.sums().read(next);
  next += 2;
  if (norm.defined()) figures.gradient_norm = *next++;
  if (scale.defined()) figures.loss_scale = optim::GradScaler::read(next);
  return figures;
}

optim::LossScale RunTelemetry::read_loss_scale() const { return read_figures().loss_scale; }

TrainingFigures RunTelemetry::report(const Run& run) {
  const Figures figures = read_figures();
  const SumValues& sums = figures.sums;
  const Clock::time_point now = Clock::now();
  ReportEvent event;
  event.at = update_event(run.at);
  event.loader = parts_.loader.stats();
  const double images = static_cast<double>(std::max<int64_t>(1, sums.images - last_report_.sums.images));
  const double seconds = std::max(1e-9, std::chrono::duration<double>(now - last_report_.begin).count());
  event.train_loss = (sums.loss_sum - last_report_.sums.loss_sum) / images;
  event.train_score = parts_.updater.task().score();
  event.train_score.value = (event.train_score.unit == MetricUnit::percent ? 100 : 1) *
                            (sums.score_sum - last_report_.sums.score_sum) / images;
  event.images_per_second = images / seconds;
  event.data_wait_share = (event.loader.consumer_wait_seconds - last_report_.wait_seconds) / seconds;
  event.elapsed_seconds = run.elapsed_seconds();
  event.times = parts_.timer.since_report();
  event.gradient_norm = figures.gradient_norm;
  event.loss_scale = figures.loss_scale.scale;
  event.skipped_updates = figures.loss_scale.skipped;
  ranks_.read(parts_.timer.since_epoch_start());
  event.ranks = ranks_.since_report();
  parts_.timer.done(StepPart::report);
  const StepTimings judged = parts_.timer.recent(kJudgedSeconds, kJudgedUpdates);
  event.found = examine(Interlude::After::report_interval, judged,
                        judged.updates > 0 ? ranks_.recent() : std::vector<RankTimes>(), run);
  judge_graphs(judged);
  parts_.timer.done(StepPart::other);  // what is measured once is not a cost of a report
  last_report_ = {sums, event.loader.consumer_wait_seconds, now};
  parts_.observer.on_report(event);
  parts_.timer.done(StepPart::report);
  return {event.train_loss, figures.loss_scale};
}

EpochEvent RunTelemetry::progress_event(const RunProgress& at) const {
  const double seconds = std::max(1e-9, core::seconds_since(epoch_begin_.begin));
  EpochEvent event;
  event.epoch = at.epoch;
  event.updates = at.updates;
  event.images = at.epoch_images;
  event.update_in_epoch = at.update_in_epoch;
  event.train_loss = at.epoch_loss_sum / static_cast<double>(std::max<int64_t>(1, at.epoch_images));
  event.learning_rate = at.learning_rate;
  event.train_seconds = seconds;
  event.images_per_second = static_cast<double>(at.epoch_images - epoch_begin_.sums.images) / seconds;
  event.data_wait_share = (parts_.loader.stats().consumer_wait_seconds - epoch_begin_.wait_seconds) / seconds;
  return event;
}

EpochEvent RunTelemetry::inside_event(const RunProgress& at) {
  parts_.timer.end_epoch();
  EpochEvent event = progress_event(at);
  event.is_inside = true;
  return event;
}

void RunTelemetry::resume_epoch(double seconds) {
  const auto apart = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  epoch_begin_.begin += apart;
  last_report_.begin += apart;
  parts_.timer.recent(/*seconds=*/0, /*updates=*/0);  // what limits updates is judged anew
}

EpochEvent RunTelemetry::epoch_event(const RunProgress& at) {
  EpochEvent event = progress_event(at);
  event.times = parts_.timer.since_epoch_start();
  ranks_.read(event.times);
  event.ranks = ranks_.since_epoch_start();
  event.working_bytes = activation_arena_held();
  start_.compute.note_rate(event.images_per_second);
  event.utilization = utilization(start_.compute, event.images_per_second);
  if (event.times.wall_seconds < kJudgedSeconds) judge_graphs(event.times);  // no report could judge within it
  return event;
}

void RunTelemetry::examine_epoch(const Run& run, EpochEvent& event) {
  event.found = examine(Interlude::After::epoch, event.times, event.ranks, run);
}

/// The one slot in which others use the learner. A stop request ends their work, not the event that is under way.
Findings RunTelemetry::examine(Interlude::After after, const StepTimings& times, const std::vector<RankTimes>& ranks,
                               const Run& run) {
  Interlude interlude;
  interlude.after = after;
  interlude.epoch = run.at.epoch;
  interlude.is_first_epoch = run.at.epoch == start_.start_epoch;
  interlude.epochs_left = start_.epochs - 1 - run.at.epoch;
  interlude.times = times;
  interlude.ranks = ranks;
  interlude.seconds_allowed = core::stop_requested() ? 0 : slot_seconds_left(run);
  const Clock::time_point begin = Clock::now();
  Findings found;
  try {
    found = parts_.between_updates.run(parts_.updater.learner(), interlude);
  } catch (const core::StopRequested&) {
  }
  seconds_in_slot_ += core::seconds_since(begin);
  return found;
}

/// The share of the run's predicted time that is over: measurements should be early, while memory
/// still grows.
double RunTelemetry::slot_seconds_left(const Run& run) const {
  const auto done = static_cast<double>(run.at.updates - start_.start_updates);
  const auto requested = static_cast<double>(start_.total_updates - start_.start_updates);
  const double expected = run.elapsed_seconds() * std::max(1.0, requested / std::max(1.0, done));
  return kSlotShare * expected - seconds_in_slot_;
}

/// The result takes effect from the next update on.
void RunTelemetry::judge_graphs(const StepTimings& window) {
  const StepGraph* const graph = parts_.updater.graph();
  if (!settings_.tries_graphs || !graph || graph_trial_.is_decided()) return;
  const bool uses = graph_trial_.judge(window) && !graph->has_given_up();
  parts_.updater.use_graphs(uses);
  if (!graph_trial_.is_decided() || graph->has_given_up()) return;
  core::log_info("graphs are {}: an update takes {:.3g} ms with them, {:.3g} ms without", uses ? "used" : "not used",
                 1e3 * graph_trial_.replayed_seconds(), 1e3 * graph_trial_.launched_seconds());
}

void RunTelemetry::on_saved(std::optional<CheckpointEvent> saved) {
  if (!saved) return;
  last_checkpoint_ = std::move(*saved);
  last_checkpoint_.stall_seconds = save_stall_seconds_;
  parts_.observer.on_checkpoint(last_checkpoint_);
}

void RunTelemetry::on_save(double stall_seconds, std::optional<CheckpointEvent> saved) {
  save_stall_seconds_ = stall_seconds;
  on_saved(std::move(saved));
  parts_.timer.done(StepPart::save);
}

FinishEvent RunTelemetry::finish(const Run& run, FinishEvent event) {
  event.reason = *run.end;
  event.signal_name = core::stop_signal_name();
  event.updates = run.at.updates;
  event.epochs_done = run.at.epoch;
  event.best_value = run.at.best.value;
  event.best_epoch = run.at.best.epoch;
  event.best_updates = run.at.best.updates;
  if (run.at.latest.updates == run.at.updates && run.at.latest.exists()) event.last_value = run.at.latest.value;
  event.checkpoint = last_checkpoint_.path;
  event.elapsed_seconds = run.elapsed_seconds();
  parts_.observer.on_finish(event);
  return event;
}

namespace {

/// Shares the contents that each rank has seen with all of them.
void share(data::SeenContents& seen, Group& group) {
  MessageWriter own;
  for (const auto& [sample, digest] : seen.seen()) {
    own.add(sample);
    own.add(static_cast<int64_t>(digest));
  }
  for (const std::string& of_rank : group.gather(own.bytes())) {
    for (MessageReader message(of_rank); !message.at_end();) {
      const int64_t sample = message.i64();
      seen.add_seen(sample, static_cast<uint64_t>(message.i64()));
    }
  }
}

}  // namespace

SplitOverlap::SplitOverlap(std::shared_ptr<const data::Source>& training,
                           std::shared_ptr<const data::Source>& validation)
    : seen_in_training_(std::make_shared<data::SeenContents>(training->size())),
      seen_in_validation_(std::make_shared<data::SeenContents>(validation->size())) {
  training = data::make_watched_source(training, seen_in_training_);
  validation = data::make_watched_source(validation, seen_in_validation_);
}

void SplitOverlap::stop() {
  if (!seen_in_training_) return;
  seen_in_training_->stop();
  seen_in_validation_->stop();
}

std::vector<SharedSample> SplitOverlap::compare(Group& group) {
  if (!seen_in_training_ || seen_in_training_->stopped()) return {};
  stop();
  if (!group.is_alone()) {
    share(*seen_in_training_, group);
    share(*seen_in_validation_, group);
  }
  std::vector<SharedSample> shared;
  for (const auto& [validation, training] : seen_in_validation_->found_in(*seen_in_training_)) {
    shared.push_back({validation, training});
  }
  return shared;
}

}  // namespace stoker::engine
