// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"
#include "core/time/trace.h"
#include "engine/memory/activation_arena.h"
#include "engine/step/one_image.h"

namespace stoker::engine {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWorstSamples = 16;
constexpr double kJudgedSeconds = 3;  // of training, before its times say what limits it

/// For its lifetime the model holds the averaged weights, when there are any.
class AveragedWeights {
 public:
  AveragedWeights(optim::Ema* ema, model::ImageModel& model) : ema_(ema), model_(model) {
    if (ema_) ema_->swap(model_);
  }
  ~AveragedWeights() {
    if (ema_) ema_->swap(model_);
  }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  optim::Ema* ema_;
  model::ImageModel& model_;
};

[[noreturn]] void throw_diverged(double loss, const RunProgress& at, const CheckpointFiles& files) {
  const char* const value = std::isnan(loss) ? "NaN" : loss > 0 ? "infinite" : "minus infinity";  // no "-nan"
  throw diverged_error(
      core::format("the loss is {} at update {} (learning rate {:g})", value, at.updates, at.learning_rate), files);
}

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
      timer_(parts.learner.device, parts.train_feed.loader()),
      step_(settings.update, parts.task, parts.learner, &timer_),
      sums_(parts.learner.device),
      save_every_(settings.save_every),
      report_every_(settings.report_every),
      val_every_(settings.val_every),
      run_begin_(Clock::now()) {}

FinishEvent Trainer::run(RunProgress at) {
  observer_.on_start({settings_.limits.epochs, settings_.plan.updates(),
                      total_updates(settings_.plan, settings_.limits), settings_.plan.images, at.epoch, at.updates,
                      task_.metrics()});
  run_begin_ = Clock::now();
  seconds_before_ = at.train_seconds;
  step_.set_pieces(at.pieces);
  if (settings_.auto_micro_batch) learner_.optimizer->state();  // made now: nothing is allocated once weights move
  for (;;) {
    if (const auto reason = limit_reached(settings_.limits, at)) return finish(at, *reason);
    const EpochEnd end = train_epoch(at);
    if (end == EpochEnd::stopped) return finish(at, StopReason::signal);
    try {
      finish_epoch(at, end);
    } catch (const core::StopRequested&) {  // in validation, say: what `at` holds is consistent at all times
      return finish(at, StopReason::signal);
    }
  }
}

Trainer::EpochEnd Trainer::train_epoch(RunProgress& at) {
  learner_.model->train();
  sums_.restore({at.epoch_loss_sum, at.epoch_score_sum, at.epoch_images});
  train_feed_.begin_epoch(at.epoch, settings_.plan.window(at.update_in_epoch).first_batch);
  epoch_begin_ = last_report_ = {sums_.read(), train_feed_.loader().stats().consumer_wait_seconds, Clock::now()};
  timer_.begin_epoch();

  EpochEnd end = EpochEnd::complete;
  while (end == EpochEnd::complete && at.update_in_epoch < settings_.plan.updates()) {
    try {
      do_update(settings_.plan.window(at.update_in_epoch), at);
      observer_.on_update(update_event(at));
      timer_.done(StepPart::other);
      if (report_every_.due_after_update(at.updates)) report(at);  // the only host sync in the loop
    } catch (
        const core::StopRequested&) {  // between updates: none of the next one was applied, `at` says how many were
      end = EpochEnd::stopped;
    }
    at.train_seconds = seconds_before_ + core::seconds_since(run_begin_);

    if (end == EpochEnd::stopped || core::stop_requested()) {
      end = EpochEnd::stopped;
    } else if (at.update_in_epoch == settings_.plan.updates()) {
      break;  // what is due here is saved after validation
    } else if (limit_reached(settings_.limits, at)) {
      end = EpochEnd::limit;
    } else if (save_every_.due_after_update(at.updates) || core::take_save_request()) {
      read_sums(at);
      save(at, /*is_best=*/false);
    }
  }
  timer_.end_epoch();
  read_sums(at);
  return end;
}

/// One update = the micro-batches of its window; a micro-batch is what fits the device at once.
void Trainer::do_update(const UpdateWindow& window, RunProgress& at) {
  timer_.begin_update(at.updates);
  const int64_t images =
      settings_.auto_micro_batch ? gather_in_smaller_pieces(window, at) : gather_gradients(window, at);
  if (images > 0 && images < window.planned_images) step_.correct_mean(window.planned_images, images);
  const optim::UpdateRates rates = schedule_.rates_at(at.updates);
  at.learning_rate = rates.lr;
  step_.apply(rates);
  at.images += images;
  ++at.updates;
  ++at.update_in_epoch;
}

/// Forward and backward over the window; returns how many images had a part in it.
int64_t Trainer::gather_gradients(const UpdateWindow& window, const RunProgress& at) {
  int64_t images = 0;
  for (int64_t i = 0; i < window.batch_count; ++i) {
    data::Batch batch;
    const bool may_stop = i == 0;  // an update that has begun is finished
    if (!train_feed_.next(batch, may_stop))
      throw core::Error(core::ErrorKind::bug, "the loader ended before its epoch did");
    timer_.fetched();
    if (batch.image_count() == 0) continue;  // every image of it was bad and skipped
    if (batch.image_count() == 1 && !trains_on_one(batch)) continue;
    const Mix mix =
        draw_mix(settings_.mix, at.epoch, window.first_batch + i, batch.images.size(-1), batch.images.size(-2));
    const Forward out = step_.accumulate(batch, window.planned_images, mix);
    sums_.add(out.loss_sum, task_.score_sum(out.outputs, out.scored_against),
              batch.image_count());  // stays on the device
    images += batch.image_count();
    timer_.done(StepPart::other);
  }
  return images;
}

/// Skipping bad images can leave one image of a batch. Where batch norm cannot train on it, it is left out as well;
/// which batches that concerns is a matter of the data alone, so a resumed run leaves out the same.
bool Trainer::trains_on_one(const data::Batch& batch) {
  if (!trains_on_one_) {
    trains_on_one_ = trains_on_one_image(*learner_.model, batch.images, settings_.update.precision);
  }
  if (!*trains_on_one_)
    core::log_warning("a batch of which skipping left one image is left out: batch norm cannot train on it");
  return *trains_on_one_;
}

/// Validates when due, notes whether this is the best epoch, and moves the run on to the next one. The epoch
/// counts as finished only after all of that: a resume neither repeats nor skips part of an epoch's end. An epoch
/// cut short by a limit is validated too but stays under way, so that a raised limit goes on from there.
void Trainer::finish_epoch(RunProgress& at, EpochEnd end) {
  EpochEvent event = summarize_epoch(at);
  if (!std::isfinite(event.train_loss)) throw_diverged(event.train_loss, at, checkpoints_.files());
  RunProgress next = at;
  if (end == EpochEnd::complete) {
    ++next.epoch;
    next.update_in_epoch = 0;
    next.epoch_loss_sum = next.epoch_score_sum = 0;
    next.epoch_images = 0;
  }
  const bool run_ends = limit_reached(settings_.limits, next).has_value();
  if (val_every_.due_after_epoch(next.epoch) || run_ends) validate(next, event);
  event.best_value = next.best_value;
  next.train_seconds = seconds_before_ + core::seconds_since(run_begin_);
  at = next;
  observer_.on_epoch(event);  // before the save: a row without its checkpoint is cut on resume, never the reverse
  const bool save_is_due = save_every_.due_after_update(at.updates) || save_every_.due_after_epoch(at.epoch);
  if (save_is_due || event.is_best || core::take_save_request() || limit_reached(settings_.limits, at)) {
    save(at, event.is_best);
  }
  core::throw_if_stopped();
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
  event.bad_images = static_cast<int64_t>(train_feed_.loader().bad_samples().size());
  event.times = timer_.since_epoch_began();
  event.working_bytes = activation_arena_held();
  return event;
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
  const AveragedWeights averaged(learner_.ema.get(), *learner_.model);
  return evaluate(*learner_.model, task_, val_feed_, settings_.update.precision, settings_.tta, on_batch);
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

void Trainer::report(const RunProgress& at) {
  const SumValues sums = sums_.read();
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
  event.recent_times = timer_.recent(kJudgedSeconds);
  if (step_.gradient_norm().defined()) event.gradient_norm = step_.gradient_norm().item<double>();
  if (learner_.scaler->enabled()) {
    event.loss_scale = learner_.scaler->scale().item<double>();
    event.skipped_updates = learner_.scaler->skipped().item<int64_t>();
  }
  last_report_ = {sums, event.loader.consumer_wait_seconds, now};
  observer_.on_report(event);
  timer_.done(StepPart::report);
  if (!std::isfinite(event.train_loss)) throw_diverged(event.train_loss, at, checkpoints_.files());
}

/// Brings the epoch's sums from the device into the state, which is about to be saved.
void Trainer::read_sums(RunProgress& at) {
  const SumValues sums = sums_.read();
  at.epoch_loss_sum = sums.loss_sum;
  at.epoch_score_sum = sums.score_sum;
  at.epoch_images = sums.images;
}

void Trainer::save(const RunProgress& at, bool is_best) {
  last_checkpoint_ = checkpoints_.save(at, learner_, train_feed_.loader().bad_samples(), is_best);
  saved_at_ = {at.epoch, at.updates};
  observer_.on_checkpoint(last_checkpoint_);
  timer_.done(StepPart::save);
}

FinishEvent Trainer::finish(const RunProgress& at, StopReason reason) {
  if (saved_at_ != std::pair(at.epoch, at.updates)) save(at, /*is_best=*/false);
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

UpdateEvent Trainer::update_event(const RunProgress& at) const {
  return {at.epoch, at.update_in_epoch, at.updates, sums_.images(), at.learning_rate};
}

}  // namespace stoker::engine
