// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/trainer.h"

#include <chrono>
#include <cmath>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "core/time/clock.h"
#include "core/time/trace.h"
#include "engine/group/message.h"
#include "engine/loop/group_exchange.h"
#include "engine/saved/weights.h"
#include "engine/task/evaluate.h"

namespace stoker::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWorstSamples = 16;

/// Whether the learning rate has just been lowered: that is saved, so that checkpoints have all rates of a run.
bool is_cut_at(const RunProgress& at) { return !at.rate_cuts.empty() && at.rate_cuts.back() == at.updates; }

}  // namespace

Trainer::Trainer(const TrainerSettings& settings, const TrainerParts& parts)
    : settings_(settings),
      updater_(parts.updater),
      train_feed_(parts.train_feed),
      val_feed_(parts.val_feed),
      schedule_(parts.schedule),
      checkpoints_(parts.checkpoints),
      group_(parts.group),
      telemetry_(parts.telemetry),
      batches_(parts.train_feed, parts.group.size()),
      decisions_(settings.limits, settings.save_every, settings.report_every, parts.group,
                 settings.can_validate ? settings.val_every : config::Interval(), settings.keep_every) {}

FinishEvent Trainer::run(const RunProgress& from) {
  telemetry_.start_run(from, settings_.plan, settings_.limits);
  updater_.set_micro_batches(from.micro_batches);
  bad_samples_ = train_feed_.loader().bad_count();
  Run run(from);
  run.end = limit_reached(settings_.limits, run.at);
  if (run.end) saved_at_ = {run.at.epoch, run.at.updates};
  while (!run.end) {
    train_epoch(run);
    if (!run.end) finish_epoch(run);
  }
  return finish(run);
}

/// Continues with the epoch that the run stands in, up to its end, a limit or a stop.
void Trainer::train_epoch(Run& run) {
  start_epoch(run.at);
  const int64_t updates = settings_.plan.updates();
  const bool is_resumed_inside = run.at.update_in_epoch > 0 && run.trains(updates);
  if (is_resumed_inside && decisions_.owes_evaluation(run.at) && evaluate_inside(run)) save(with_sums(run.at));
  while (run.trains(updates)) {
    // Train: one optimizer step, whole or not at all.
    if (!update(run)) break;
    telemetry_.on_update(run.at);
    // Decide: one answer for all ranks.
    const Decision next = decide(run);
    // Act: reports and saves read from the device.
    telemetry_.on_saved(checkpoints_.take_saved());
    if (next.reports) check_learning(run.at, telemetry_.report(run));
    run.follow(next);
    const bool has_news = next.evaluates && run.trains(updates) && evaluate_inside(run);
    if (next.saves || has_news) save(with_sums(run.at));
  }
  telemetry_.end_epoch();
  run.at = with_sums(run.at);
}

void Trainer::start_epoch(const RunProgress& at) {
  updater_.learner().model->train();
  updater_.sums().restore(epoch_sums(at));
  batches_.begin_epoch(at.epoch, own_batches_before(settings_.plan, share_of(group_), at.update_in_epoch));
  telemetry_.start_epoch();
}

/// Returns whether it was done: a stop that comes while it waits for data leaves everything as it was, and ends the
/// run.
bool Trainer::update(Run& run) {
  RunProgress& at = run.at;
  UpdateWindow window = settings_.plan.window(at.epoch, at.update_in_epoch);
  window.number = at.updates;
  const optim::UpdateRates rates = schedule_.rates_at(at.schedule_update(settings_.plan.updates()), at.num_rate_cuts());
  const WorkInStep in_step(group_);
  int64_t images = 0;
  try {
    telemetry_.watch(window, [&] { images = updater_.update(batches_, window, rates); });
  } catch (const core::StopRequested&) {
    run.end = StopReason::signal;
    return false;
  }
  at.add_update(images, rates.lr, updater_.micro_batches());
  return true;
}

/// Ranks agree on what follows an update, and on the clock of the run; they exchange bad samples.
Decision Trainer::decide(Run& run) {
  RunProgress& at = run.at;
  data::Loader& loader = train_feed_.loader();
  const bool is_last_of_epoch = at.update_in_epoch == settings_.plan.updates();
  at.train_seconds = run.train_seconds();
  const Decision next =
      decisions_.after_update(at, is_last_of_epoch, loader.bad_count(), telemetry_.waited_for_ranks());
  at.train_seconds = next.train_seconds;
  if (next.bad_samples > bad_samples_) bad_samples_ = share_bad_samples(loader, group_);
  telemetry_.on_decision(next);
  return next;
}

/// Returns whether to save: this is the best so far, or the learning rate falls. The epoch continues, unless this ends
/// the run for want of improvement. A stop leaves the evaluation to the resume.
bool Trainer::evaluate_inside(Run& run) {
  const std::chrono::steady_clock::time_point begin = Clock::now();
  RunProgress at = with_sums(run.at);
  EpochEvent event = telemetry_.inside_event(at);
  check_learning(at, {event.train_loss, telemetry_.read_loss_scale()});
  try {
    validate(at, /*is_due=*/true, event);
  } catch (const core::StopRequested&) {
    run.end = StopReason::signal;
    return false;
  }
  updater_.learner().model->train();
  event.best_value = at.best.value;
  event.bad_images = static_cast<int64_t>(bad_samples_of_all(train_feed_.loader().bad_samples(), group_).size());
  at.train_seconds = run.train_seconds();
  const Decision decision = decisions_.after_evaluation(at);
  at.train_seconds = decision.train_seconds;
  if (settings_.val_every.unit == config::Interval::Unit::seconds) at.evaluated_seconds = at.train_seconds;
  run.at = at;
  run.end = decision.limit;
  telemetry_.on_epoch(event);
  report_cut(run);
  telemetry_.resume_epoch(core::seconds_since(begin));
  return event.is_best || is_cut_at(run.at);
}

/// Validates when due, notes whether this is the best epoch, and moves the run on to the next one. The epoch counts as
/// finished only after all of that: a resume neither repeats nor skips part of an epoch's end. An epoch cut short by a
/// limit is validated too but stays under way, so that a raised limit continues from there. What is validated only
/// because the run stops counts for nothing once it continues: a run ends the same whether or not it was stopped.
void Trainer::finish_epoch(Run& run) {
  EpochEvent event = telemetry_.epoch_event(run.at);
  if (!run.is_cut_short && run.at.epoch_images == 0) {
    throw core::Error(core::ErrorKind::data,
                      core::format("epoch {}: none of its images could be used", run.at.epoch + 1),
                      "train check on the data names what is wrong with them");
  }
  event.is_cut_short = run.is_cut_short;
  check_learning(run.at, {event.train_loss, telemetry_.read_loss_scale()});
  RunProgress next = run.at;
  if (!run.is_cut_short) next.begin_next_epoch();
  // Validate.
  const bool is_due = decisions_.owes_evaluation(run.at) ||
                      (!run.is_cut_short && (Cadence(settings_.val_every).due_after_epoch(next.epoch) ||
                                             next.epoch >= settings_.limits.epochs));
  if (settings_.can_validate && (is_due || limit_reached(settings_.limits, next))) {
    try {
      const bool is_measured = measure_statistics(next);
      validate(next, is_due, event);
      if (!is_measured && measure_statistics(next)) validate(next, /*is_due=*/false, event);  // no improvement
    } catch (const core::StopRequested&) {  // the epoch's end is gone through again on resume
      run.end = StopReason::signal;
      return;
    }
  }
  if (next.evaluated_updates >= 0 || event.has_eval) telemetry_.examine_validated(event);
  event.best_value = next.best.value;
  // Notify observers before the save: a row without its checkpoint is cut on resume, never the reverse.
  event.bad_images = static_cast<int64_t>(bad_samples_of_all(train_feed_.loader().bad_samples(), group_).size());
  telemetry_.examine_epoch(run, event);
  next.train_seconds = run.train_seconds();
  run.at = next;
  telemetry_.on_epoch(event);
  // Decide and act.
  const Decision decision = decisions_.after_epoch(run.at);
  run.at.train_seconds = decision.train_seconds;
  const bool is_by_clock = settings_.val_every.unit == config::Interval::Unit::seconds;
  if (is_due && is_by_clock) run.at.evaluated_seconds = decision.train_seconds;
  if (decision.saves || decision.limit || event.is_best || is_cut_at(run.at)) save(run.at);
  run.end = decision.limit;
  report_cut(run);
  if (!run.end && decision.stops) run.end = StopReason::signal;
}

void Trainer::report_cut(const Run& run) {
  if (run.end || !is_cut_at(run.at)) return;
  core::log_info("the learning rate falls to {:.4g} from update {} on: {} evaluations without a better result",
                 schedule_.at(run.at.schedule_update(settings_.plan.updates()), run.at.num_rate_cuts()),
                 run.at.updates + 1, schedule_.options().plateau_patience + 1);
}

/// After the last update of the run, once. A time limit is not its end: the run continues.
bool Trainer::measure_statistics(const RunProgress& at) {
  const auto limit = limit_reached(settings_.limits, at);
  if (settings_.statistics_images == 0 || !limit || *limit == StopReason::max_time) return false;
  const std::vector<UpdateWindow> windows =
      statistics_windows(settings_.plan, settings_.limits.epochs, settings_.statistics_images);
  if (windows.empty()) {
    core::log_warning("precise-bn does nothing: an epoch has fewer batches than an update of all replicas");
    return false;
  }
  const core::TraceScope trace("batch norm statistics");
  updater_.learner().model->train();
  updater_.measure_statistics(batches_, windows);
  core::log_info("batch norm: running statistics are those of {} batches now",
                 core::count_text(static_cast<int64_t>(windows.size()) * settings_.plan.batches_per_update()));
  return true;
}

/// Judges the averaged weights when the run keeps them, else the weights themselves.
void Trainer::validate(RunProgress& at, bool is_due, EpochEvent& event) {
  const core::TraceScope trace("validation");
  const Clock::time_point begin = Clock::now();
  WorstSamples worst(updater_.task(), kWorstSamples, val_feed_.loader().images_per_epoch());
  const auto on_batch = [this, &worst, done = int64_t{0}](const data::Batch& batch,
                                                          const torch::Tensor& outputs) mutable {
    worst.add(batch, outputs);
    done += batch.image_count();
    telemetry_.on_evaluation(done, val_feed_.loader().images_per_epoch());
  };
  EvalReport result;
  {
    const optim::AveragedWeights averaged(updater_.learner().ema.get());
    result = evaluate_sharded(group_, *updater_.learner().model, updater_.task(), val_feed_,
                              settings_.updater.step.precision, settings_.tta, on_batch);
  }
  event.has_eval = true;
  event.eval_loss = result.loss;
  event.metrics = result.metrics;
  event.eval_seconds = core::seconds_since(begin);
  const bool counts_evaluations = settings_.val_every.unit != config::Interval::Unit::epochs;
  event.is_best =
      at.note_result(result.value_of(settings_.eval_metric), result.loss,
                     config::lower_is_better(settings_.eval_metric), settings_.min_delta, is_due, counts_evaluations);
  if (is_due && schedule_.counts_for_plateau(at.updates)) {
    at.note_for_plateau(result.value_of(settings_.eval_metric), config::lower_is_better(settings_.eval_metric),
                        schedule_.options());
  }
  if (event.is_best) {
    event.worst = worst.read();
    event.ordinary = worst.read_ordinary();
  }
}

/// A loss that is not a number, or nothing but float16 gradients that overflow, ends the run.
void Trainer::check_learning(const RunProgress& at, const TrainingFigures& figures) {
  if (!std::isfinite(figures.train_loss)) throw diverged_loss(figures.train_loss, at, checkpoints_.files());
  if (updater_.learner().scaler->enabled()) require_learning(figures.loss_scale, settings_.skips, at, checkpoints_);
}

/// With the sums of the epoch, which lie on the device: before `at` is saved.
RunProgress Trainer::with_sums(RunProgress at) const {
  set_epoch_sums(updater_.sums().read(), at);
  return at;
}

/// All ranks come here together, and the root writes.
void Trainer::save(const RunProgress& at) {
  const std::vector<data::BadSample> bad = bad_samples_of_all(train_feed_.loader().bad_samples(), group_);
  saved_at_ = {at.epoch, at.updates};
  if (!group_.is_root()) return;
  const Clock::time_point begin = Clock::now();
  telemetry_.on_saved(checkpoints_.finish_save());  // the one before: only one is written at a time
  checkpoints_.begin_save(at, updater_.learner(), bad);
  telemetry_.on_save(core::seconds_since(begin), checkpoints_.take_saved());
}

/// Averages checkpoints of a finished run. The learner keeps the averaged weights.
void Trainer::average_last(const Run& run, FinishEvent& event) {
  if (!settings_.averages || continues(*run.end)) return;
  const torch::NoGradGuard no_gradients;
  const std::vector<NamedTensor> weights = model::state_of(*updater_.learner().model);
  std::vector<int64_t> of;
  MessageWriter message;
  if (group_.is_root()) {
    of = checkpoints_.to_average(run.at.updates);
    copy_by_name(weights, checkpoints_.average_of(of));
    for (const NamedTensor& entry : group_.is_alone() ? std::vector<NamedTensor>() : weights) message.add(entry.tensor);
  }
  const std::string bytes = group_.from_root(message.bytes());
  MessageReader reader(bytes);
  for (size_t i = 0; i < weights.size() && !reader.at_end(); ++i) weights[i].tensor.copy_(reader.tensor());
  try {
    if (settings_.can_validate) {
      event.average_value = evaluate_sharded(group_, *updater_.learner().model, updater_.task(), val_feed_,
                                             settings_.updater.step.precision, settings_.tta,
                                             /*visit=*/{})
                                .value_of(settings_.eval_metric);
    }
  } catch (const core::StopRequested&) {
    core::log_info("stopped before the average of the last checkpoints was evaluated: the next start does it");
    return;
  }
  if (!group_.is_root()) return;
  event.averaged = static_cast<int64_t>(of.size());
  checkpoints_.save_average(run.at, weights, of, event.average_value);
}

FinishEvent Trainer::finish(const Run& run) {
  if (saved_at_ != std::pair(run.at.epoch, run.at.updates)) save(run.at);
  telemetry_.on_saved(checkpoints_.finish_save());
  FinishEvent event;
  average_last(run, event);
  return telemetry_.finish(run, event);
}

}  // namespace stoker::engine
