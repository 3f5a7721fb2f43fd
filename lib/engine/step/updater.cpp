// SPDX-License-Identifier: Apache-2.0
#include "engine/step/updater.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/system/stop_signal.h"
#include "engine/device/device.h"
#include "engine/device/precision.h"
#include "engine/device/random_state.h"
#include "engine/memory/activation_arena.h"
#include "engine/step/state_snapshot.h"
#include "model/layers/random_source.h"

namespace stoker::engine {

data::Batch EpochFeed::next(bool may_stop) {
  data::Batch batch;
  if (!feed_.next(batch, may_stop)) throw core::Error(core::ErrorKind::bug, "the loader ended before its epoch did");
  return batch;
}

data::Batch RepeatedBatch::next(bool may_stop) {
  if (may_stop) core::throw_if_stopped();
  return batch_;
}

Updater::Updater(const UpdaterSettings& settings, const Task& task, Learner& learner, StepTimer* timer, Group& group,
                 GraphRunner* graphs)
    : settings_(settings),
      task_(task),
      learner_(learner),
      timer_(timer),
      group_(group),
      share_(share_of(group)),
      step_(settings.step, task, learner, timer),
      sums_(learner.device) {
  if (!group.is_alone()) {
    rank_sum_.emplace(group, sum_parts_of(learner), learner.optimizer->parameters().size(), settings.sum_order);
    if (settings.overlap) hooks_.emplace(parameters_of(learner));
  }
  if (graphs && group.is_alone()) {
    graph_.emplace(*graphs, learner, settings.requires_graphs);
    uses_graph_ = settings.requires_graphs;
  }
  if (settings.auto_micro_batch) learner.optimizer->state();  // made now: nothing is allocated once weights move
}

int64_t Updater::update(BatchFeed& feed, const UpdateWindow& window, const optim::UpdateRates& rates) {
  if (timer_) timer_->begin_update(window.number);
  sent_before_ = group_.bytes_sent();
  const int64_t images = settings_.auto_micro_batch ? gather_or_split(feed, window) : gather_once(feed, window);
  if (images > 0 && images < window.planned_images) step_.correct_mean(window.planned_images, images);
  if (watcher_ && images > 0) watcher_->on_gradients(learner_);
  step_.apply(rates);
  return images;
}

int64_t Updater::gather_once(BatchFeed& feed, const UpdateWindow& window) {
  if (is_one_replica(window)) return gather(feed, window);
  ReplicaSum sum(learner_, window.replicas, other_ranks());
  gather_replicas(feed, window, sum);
  return *exchange(sum, /*ran_out_of_memory=*/false);
}

/// Forward and backward over the window; returns how many images had a part in it.
int64_t Updater::gather(BatchFeed& feed, const UpdateWindow& window) {
  int64_t images = 0;
  for (int64_t i = 0; i < window.batch_count; ++i) {
    const data::Batch batch = feed.next(/*may_stop=*/i == 0);
    if (timer_) timer_->fetched();
    images += add_batch(batch, window, i, sums_);
  }
  return images;
}

/// Forward and backward over the replicas of this rank, one after the other.
void Updater::gather_replicas(BatchFeed& feed, const UpdateWindow& window, ReplicaSum& sum) {
  // Else gradients of a weight that a pass uses several times would be added in reduced precision.
  const NoAutocastCacheScope without_cache;
  const std::vector<int64_t> own = own_replicas(window.replicas, share_);
  bool may_stop = group_.is_alone();
  for (int64_t turn = 0; turn < static_cast<int64_t>(own.size()); ++turn) {
    const int64_t replica = own[static_cast<size_t>(turn)];
    RunningSums sums(learner_.device);
    sum.begin_replica(turn);
    for (int64_t i = replica; i < window.batch_count; i += window.replicas) {
      // The numbers that the network draws: of this batch of this replica, whoever computes it.
      core::Rng random(settings_.seed, core::RngPurpose::network, static_cast<uint64_t>(window.number),
                       static_cast<uint64_t>(i));
      const model::DrawScope draws(make_generator(random.next(), learner_.device));
      const data::Batch batch = feed.next(std::exchange(may_stop, false));
      if (timer_) timer_->fetched();
      const bool is_last = i + window.replicas >= window.batch_count;
      const auto watch = [&] { sum.watch_backward(turn); };
      add_batch(batch, window, i, sums, is_last ? std::function<void()>(watch) : std::function<void()>());
    }
    const SumValues values = sums.read();
    sum.end_replica(turn, {values.loss_sum, values.score_sum, values.images});
  }
}

/// Gradients, buffers and sums become those of all replicas; returns their images. Nothing where memory ran out on any
/// rank.
std::optional<int64_t> Updater::exchange(ReplicaSum& sum, bool ran_out_of_memory) {
  if (timer_) timer_->done(StepPart::backward);
  if (sum.agree(ran_out_of_memory)) return std::nullopt;
  sum.finish();
  if (timer_ && rank_sum_) {
    timer_->exchanged(rank_sum_->under_way(), group_.bytes_sent() - sent_before_);
    timer_->done(StepPart::exchange);
  }
  int64_t images = 0;
  SumValues sums = sums_.read();
  for (const ReplicaCount& replica : sum.counts()) {
    sums.loss_sum += replica.loss_sum;
    sums.score_sum += replica.score_sum;
    sums.images += replica.images;
    images += replica.images;
  }
  sums_.restore(sums);
  if (timer_) timer_->done(StepPart::other);
  return images;
}

/// Adds the gradients of a batch and its results; returns how many images had a part in them.
int64_t Updater::add_batch(const data::Batch& batch, const UpdateWindow& window, int64_t batch_in_window,
                           RunningSums& sums, const std::function<void()>& before_last_backward) {
  if (!can_train_on(batch)) return 0;
  const Mix mix = draw_mix(settings_.mix, window.epoch, window.first_batch + batch_in_window, batch.images.size(-1),
                           batch.images.size(-2));
  // The short batch at the end of an epoch is not worth cuDNN's search for its shape.
  std::optional<NoSearchScope> no_search;
  if (batch.image_count() < window.batch_size) no_search.emplace();
  StepGraph* const graph = suits_graph(batch, window) ? &*graph_ : nullptr;
  const Forward out =
      step_.accumulate(batch, window.planned_images, mix, {before_last_backward, watcher_, batch_in_window, graph});
  sums.add(out.loss_sum, task_.score_sum(out.outputs, out.scored_against), batch.image_count());  // on the device
  if (timer_) timer_->done(StepPart::other);
  return batch.image_count();
}

void Updater::use_graphs(bool use) {
  if (graph_ && uses_graph_ && !use) graph_->forget();
  uses_graph_ = use;
}

/// All of a full batch, in one micro-batch, that no watcher looks at on its way.
bool Updater::suits_graph(const data::Batch& batch, const UpdateWindow& window) const {
  return graph_ && uses_graph_ && window.replicas == 1 && !watcher_ && step_.micro_batches() == 1 &&
         batch.image_count() == window.batch_size && batch.planned_images == window.batch_size;
}

/// Whether enough of `batch` is left once bad images are skipped. That is a matter of the data alone, so a resumed run
/// leaves out the same batches.
bool Updater::can_train_on(const data::Batch& batch) {
  if (batch.image_count() != 1) return batch.image_count() > 0;
  if (!trains_on_one_) trains_on_one_ = trains_on_one_image(*learner_.model, batch.images, settings_.step.precision);
  if (!*trains_on_one_) {
    core::log_warning("a batch of which skipping left one image is left out: batch norm cannot train on it");
  }
  return *trains_on_one_;
}

/// gather_once(); when memory runs out, on any rank, puts everything back and does it again in smaller micro-batches.
int64_t Updater::gather_or_split(BatchFeed& feed, const UpdateWindow& window) {
  for (;;) {
    const StateSnapshot before(*learner_.model, learner_.device);
    const RunningSums sums_before = sums_.copy();
    std::optional<ReplicaSum> sum;
    if (!is_one_replica(window)) sum.emplace(learner_, window.replicas, other_ranks());
    std::string cause = "on another rank";
    bool ran_out = false;
    try {
      if (!sum) return gather(feed, window);
      gather_replicas(feed, window, *sum);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error, free_memory_share(learner_.device))) throw;
      cause = short_text_of(error);
      ran_out = true;
    }
    // Outside of the handler: what was thrown may hold on to tensors.
    if (sum) {
      if (const auto images = exchange(*sum, ran_out)) return *images;
    }
    sum.reset();
    learner_.optimizer->zero_grad();
    if (graph_) graph_->forget();  // its memory may be what is missing
    before.restore();
    sums_ = sums_before;
    release_unused_memory(learner_.device);
    trim_activation_arena();
    split_batches(window, cause);
    feed.rewind_to(window);
  }
}

void Updater::split_batches(const UpdateWindow& window, const std::string& cause) {
  const int64_t micro_batches = step_.micro_batches(), batch = window.batch_size;
  if (batch / micro_batches < 4) {
    throw core::Error(core::ErrorKind::out_of_memory,
                      core::format("out of memory at update {} with {} images at a time: {}", window.number + 1,
                                   std::max<int64_t>(1, batch / micro_batches), cause),
                      "choose a smaller --img-size or --model, or --grad-checkpointing; train plan shows what fits");
  }
  step_.set_micro_batches(2 * micro_batches);
  core::log_warning(
      "out of memory at update {} ({}): it is done again, and from here on each batch of {} is computed in {} "
      "micro-batches of {}; an update sees as many images as before",
      window.number + 1, cause, batch, 2 * micro_batches, batch / (2 * micro_batches));
}

}  // namespace stoker::engine
