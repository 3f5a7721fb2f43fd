// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/trainer.h"

#include <chrono>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"
#include "core/time/trace.h"
#include "engine/device/without_sync.h"
#include "engine/loop/group_exchange.h"

namespace stoker::engine {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWorstSamples = 16;

/// For its lifetime the model holds the averaged weights, when there are any.
class AveragedWeights {
 public:
  explicit AveragedWeights(optim::Ema* ema) : ema_(ema) {
    if (ema_) ema_->swap();
  }
  ~AveragedWeights() {
    if (ema_) ema_->swap();
  }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  optim::Ema* ema_;
};

}  // namespace

Trainer::Trainer(const TrainerSettings& settings, const TrainerParts& parts)
    : settings_(settings),
      task_(parts.task),
      learner_(parts.learner),
      train_feed_(parts.train_feed),
      val_feed_(parts.val_feed),
      schedule_(parts.schedule),
      checkpoints_(parts.checkpoints),
      observer_(parts.observer),
      between_updates_(parts.between_updates),
      operators_(parts.operators),
      split_overlap_(parts.split_overlap),
      timer_(parts.learner.device, parts.train_feed.loader()),
      updater_(settings.updater, parts.task, parts.learner, &timer_, parts.group, parts.graphs),
      group_(with_others(parts.group)),
      share_(group_ ? RankShare{group_->rank(), group_->size()} : RankShare{}),
      batches_(parts.train_feed, share_.count),
      decisions_(settings.limits, settings.save_every, settings.report_every, parts.group),
      ranks_(parts.group),
      val_every_(settings.val_every),
      run_begin_(Clock::now()) {}

FinishEvent Trainer::run(RunProgress at) {
  begin_run(at);
  if (const auto reason = limit_reached(settings_.limits, at)) return finish(at, *reason);
  for (;;) {
    const EpochEnd end = train_epoch(at);
    if (end == EpochEnd::stopped) return finish(at, StopReason::signal);
    try {
      const Decision decision = finish_epoch(at, end);
      if (decision.limit) return finish(at, *decision.limit);
      if (decision.stops) return finish(at, StopReason::signal);
    } catch (const core::StopRequested&) {  // in validation: the epoch's end is gone through again on resume
      return finish(at, StopReason::signal);
    }
  }
}

void Trainer::begin_run(RunProgress& at) {
  start_ = {settings_.limits.epochs,
            settings_.plan.updates(),
            total_updates(settings_.plan, settings_.limits),
            settings_.plan.images,
            at.epoch,
            at.updates,
            task_.metrics(),
            settings_.compute,
            settings_.backend,
            settings_.items};
  observer_.on_start(start_);
  run_begin_ = Clock::now();
  seconds_before_ = at.train_seconds;
  updater_.set_micro_batches(at.micro_batches);
  bad_samples_ = train_feed_.loader().bad_count();
  if (split_overlap_ && at.epoch > 0) split_overlap_->stop();
}

/// Goes on with the epoch that `at` stands in, up to its end, a limit or a stop.
Trainer::EpochEnd Trainer::train_epoch(RunProgress& at) {
  learner_.model->train();
  updater_.sums().restore(epoch_sums(at));
  batches_.begin_epoch(at.epoch, own_batches_before(settings_.plan, share_, at.update_in_epoch));
  epoch_begin_ =
      last_report_ = {updater_.sums().read(), train_feed_.loader().stats().consumer_wait_seconds, Clock::now()};
  timer_.begin_epoch();
  ranks_.begin_epoch();

  EpochEnd end = EpochEnd::complete;
  while (end == EpochEnd::complete && at.update_in_epoch < settings_.plan.updates()) {
    try {
      do_update(at);
    } catch (const core::StopRequested&) {  // while it waited for data: nothing of it has been applied
      end = EpochEnd::stopped;
      break;
    }
    observer_.on_update(update_event(at));
    timer_.done(StepPart::other);
    const Decision decision = decide(at);
    note_saved(checkpoints_.take_saved());
    if (decision.reports) report(at);  // reads from the device, as digests, saves and the exchange of ranks do
    if (decision.saves) {
      read_sums(at);
      save(at, /*is_best=*/false);
    }
    if (decision.limit) end = EpochEnd::limit;
    if (decision.stops) end = EpochEnd::stopped;
  }
  timer_.end_epoch();
  read_sums(at);
  return end;
}

/// After an update. In a group the ranks agree on it; what each waits for the others meanwhile counts as exchange.
Decision Trainer::decide(RunProgress& at) {
  const bool is_last_of_epoch = at.update_in_epoch == settings_.plan.updates();
  const double exchanged = timer_.seconds_so_far(StepPart::exchange);
  at.train_seconds = seconds_before_ + core::seconds_since(run_begin_);
  const Decision decision =
      decisions_.after_update(at, is_last_of_epoch, train_feed_.loader().bad_count(), exchanged + decision_waited_);
  at.train_seconds = decision.train_seconds;
  if (!group_) return decision;
  if (decision.bad_samples > bad_samples_) bad_samples_ = share_bad_samples(train_feed_.loader(), *group_);
  timer_.done(StepPart::exchange);
  decision_waited_ = timer_.seconds_so_far(StepPart::exchange) - exchanged;
  ranks_.add_exchange(decision.waited);
  return decision;
}

void Trainer::do_update(RunProgress& at) {
  UpdateWindow window = settings_.plan.window(at.epoch, at.update_in_epoch);
  window.number = at.updates;
  const optim::UpdateRates rates = schedule_.rates_at(at.updates);
  const WorkInStep in_step(group_);
  ImageDigest images;
  const bool has_digest = digest_due(settings_.digest_every, at.updates + 1);
  updater_.set_watcher(has_digest ? &images : nullptr);
  // Digests are read at once, and what replicas and ranks exchange passes through the host.
  const bool waits_for_device = has_digest || window.replicas > 1 || group_;
  int64_t trained = 0;  // images
  const auto update = [&] { trained = updater_.update(batches_, window, rates); };
  const auto checked_update = [&] { waits_for_device ? update() : without_sync(learner_.device, update); };
  if (operators_) {
    operators_->update(checked_update);  // profiles it when it is its turn
  } else {
    checked_update();
  }
  at.add_update(trained, rates.lr, updater_.micro_batches());
  if (has_digest) tell_digest(at, images);
}

/// Validates when due, notes whether this is the best epoch, and moves the run on to the next one. The epoch
/// counts as finished only after all of that: a resume neither repeats nor skips part of an epoch's end. An epoch
/// cut short by a limit is validated too but stays under way, so that a raised limit goes on from there.
Decision Trainer::finish_epoch(RunProgress& at, EpochEnd end) {
  EpochEvent event = summarize_epoch(at);
  refuse_useless_epoch(at, event.train_loss);
  RunProgress next = at;
  if (end == EpochEnd::complete) next.begin_next_epoch();
  const bool run_ends = limit_reached(settings_.limits, next).has_value();
  if (val_every_.due_after_epoch(next.epoch) || run_ends) {
    validate(next, event);
    if (split_overlap_) event.in_both_splits = split_overlap_->compare(group_);
  }
  event.bad_images = static_cast<int64_t>(bad_samples_of_all(train_feed_.loader().bad_samples(), group_).size());
  event.best_value = next.best_value;
  event.found = examine(Interlude::After::epoch, event.times, event.ranks, at);
  next.train_seconds = seconds_before_ + core::seconds_since(run_begin_);
  at = next;
  observer_.on_epoch(event);  // before the save: a row without its checkpoint is cut on resume, never the reverse
  const Decision decision = decisions_.after_epoch(at);
  at.train_seconds = decision.train_seconds;
  if (decision.saves || decision.limit || event.is_best) save(at, event.is_best);
  return decision;
}

/// An epoch without images, one whose loss is no number, or one of which every update was skipped ends the run.
void Trainer::refuse_useless_epoch(const RunProgress& at, double train_loss) {
  if (at.update_in_epoch == settings_.plan.updates() && at.epoch_images == 0) {
    throw core::Error(core::ErrorKind::data, core::format("epoch {}: none of its images could be used", at.epoch + 1),
                      "train check on the data names what is wrong with them");
  }
  if (!std::isfinite(train_loss)) throw diverged_loss(train_loss, at, checkpoints_.files());
  if (learner_.scaler->enabled()) require_learning(read_figures().loss_scale, settings_.skips, at, checkpoints_);
}

void Trainer::validate(RunProgress& at, EpochEvent& event) {
  const core::TraceScope trace("validation");
  const Clock::time_point begin = Clock::now();
  WorstSamples worst(task_, kWorstSamples);
  const EvalReport result = evaluate_learner(worst);
  event.has_eval = true;
  event.eval_loss = result.loss;
  event.metrics = result.metrics;
  event.eval_seconds = core::seconds_since(begin);
  event.is_best = note_result(at, result);
  if (event.is_best) event.worst = worst.read();
}

/// Evaluates the averaged weights when the run keeps them, else the weights themselves.
EvalReport Trainer::evaluate_learner(WorstSamples& worst) {
  const auto on_batch = [this, &worst, done = int64_t{0}](const data::Batch& batch,
                                                          const torch::Tensor& outputs) mutable {
    worst.add(batch, outputs);
    done += batch.image_count();
    observer_.on_evaluation(done, val_feed_.loader().images_per_epoch());
  };
  const AveragedWeights averaged(learner_.ema.get());
  const Precision& precision = settings_.updater.step.precision;
  if (!group_) return evaluate(*learner_.model, task_, val_feed_, precision, settings_.tta, on_batch);
  const auto predict_all = [&](const BatchVisitor& add) {
    predict_dealt(*group_, *learner_.model, val_feed_, precision, settings_.tta, add);
  };
  return evaluate_outputs(task_, precision.device, predict_all, on_batch);
}

/// Updates the best result and the patience count; true when this is the best so far.
bool Trainer::note_result(RunProgress& at, const EvalReport& report) const {
  const double value = report.value_of(settings_.eval_metric);
  const double gain = lower_is_better(settings_.eval_metric) ? at.best_value - value : value - at.best_value;
  const bool first = at.best_epoch < 0;
  const bool best = std::isfinite(value) && (first || gain > 0);
  const bool improved = std::isfinite(value) && (first || gain > settings_.min_delta);
  at.epochs_without_improvement = improved ? 0 : at.epochs_without_improvement + 1;
  if (best) {
    at.best_value = value;
    at.best_epoch = at.update_in_epoch == 0 ? at.epoch - 1 : at.epoch;
    at.best_updates = at.updates;
  }
  return best;
}

/// In a group all ranks come here together, and the root writes.
void Trainer::save(const RunProgress& at, bool is_best) {
  const std::vector<data::BadSample> bad = bad_samples_of_all(train_feed_.loader().bad_samples(), group_);
  saved_at_ = {at.epoch, at.updates};
  if (group_ && !group_->is_root()) return;
  const Clock::time_point begin = Clock::now();
  note_saved(checkpoints_.finish_save());  // the one before: only one is written at a time
  checkpoints_.begin_save(at, learner_, bad, is_best);
  save_stall_seconds_ = core::seconds_since(begin);
  note_saved(checkpoints_.take_saved());
  timer_.done(StepPart::save);
}

/// Tells of a save that has ended since.
void Trainer::note_saved(std::optional<CheckpointEvent> saved) {
  if (!saved) return;
  last_checkpoint_ = std::move(*saved);
  last_checkpoint_.stall_seconds = save_stall_seconds_;
  observer_.on_checkpoint(last_checkpoint_);
}

FinishEvent Trainer::finish(const RunProgress& at, StopReason reason) {
  if (saved_at_ != std::pair(at.epoch, at.updates)) save(at, /*is_best=*/false);
  note_saved(checkpoints_.finish_save());
  FinishEvent event;
  event.reason = reason;
  event.signal_name = core::stop_signal_name();
  event.updates = at.updates;
  event.epochs_done = at.epoch;
  event.best_value = at.best_value;
  event.best_epoch = at.best_epoch;
  event.checkpoint = last_checkpoint_.path;
  event.elapsed_seconds = core::seconds_since(run_begin_);
  observer_.on_finish(event);
  return event;
}

}  // namespace stoker::engine
