// SPDX-License-Identifier: Apache-2.0
#include "engine/step/updater.h"

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/rng.h"
#include "engine/device/device.h"
#include "engine/device/out_of_memory.h"
#include "engine/device/random_state.h"
#include "engine/memory/activation_arena.h"
#include "engine/step/one_image.h"
#include "engine/step/state_snapshot.h"
#include "model/layers/random_source.h"

namespace stoker::engine {

Updater::Updater(const UpdaterSettings& settings, const Task& task, Learner& learner, StepTimer* timer, Group* group,
                 GraphRunner* graphs)
    : settings_(settings),
      task_(task),
      learner_(learner),
      timer_(timer),
      group_(with_others(group)),
      share_(group ? RankShare{group->rank(), group->size()} : RankShare{}),
      step_(settings.step, task, learner, timer),
      lanes_(learner, settings.lanes),
      sums_(learner.device) {
  if (group_) {
    rank_sum_.emplace(*group_, sum_parts_of(learner, lanes_), learner.optimizer->parameters().size(),
                      settings.sum_order);
    if (settings.overlap) lanes_.make_hooks();
  }
  if (graphs && !group_) {
    graph_.emplace(*graphs, learner, settings.requires_graphs);
    uses_graph_ = settings.requires_graphs;
  }
  if (settings.auto_micro_batch) learner.optimizer->state();  // made now: nothing is allocated once weights move
}

int64_t Updater::update(BatchFeed& feed, const UpdateWindow& window, const optim::UpdateRates& rates) {
  if (timer_) timer_->begin_update(window.number);
  sent_before_ = group_ ? group_->bytes_sent() : 0;
  const int64_t images = settings_.auto_micro_batch ? gather_or_split(feed, window) : gather_once(feed, window);
  if (images > 0 && images < window.planned_images) step_.correct_mean(window.planned_images, images);
  if (watcher_ && images > 0) watcher_->saw_gradients(learner_);
  step_.apply(rates, lanes_.count() > 1 ? &lanes_.team() : nullptr);
  return images;
}

int64_t Updater::gather_once(BatchFeed& feed, const UpdateWindow& window) {
  if (is_one_replica(window)) return gather(feed, window);
  ReplicaSum sum(learner_, lanes_, window.replicas, other_ranks());
  gather_replicas(feed, window, sum);
  return *exchange(sum, /*ran_out_of_memory=*/false);
}

/// Forward and backward over the window; returns how many images had a part in it.
int64_t Updater::gather(BatchFeed& feed, const UpdateWindow& window) {
  int64_t images = 0;
  for (int64_t i = 0; i < window.batch_count; ++i) {
    const data::Batch batch = feed.next(/*may_stop=*/i == 0);
    if (timer_) timer_->fetched();
    images += add_batch(batch, window, i, step_.own_thread(), sums_);
  }
  return images;
}

/// Adds up the replicas of this rank, each on the lane that comes to it first.
void Updater::gather_replicas(BatchFeed& feed, const UpdateWindow& window, ReplicaSum& sum) {
  const std::vector<int64_t> own = own_replicas(window.replicas, share_);
  DealtBatches batches(feed, window, share_, /*may_stop=*/group_ == nullptr);
  std::atomic<size_t> next{0};
  lanes_.run([&](int64_t lane) {
    try {
      for (size_t i; (i = next++) < own.size();) {
        sum.begin_replica(lanes_.lane(lane));
        const SumValues values = gather_replica(static_cast<int64_t>(i), own[i], window, batches, lane, sum);
        sum.end_replica(lanes_.lane(lane), static_cast<int64_t>(i), {values.loss_sum, values.score_sum, values.images});
      }
    } catch (...) {
      next = own.size();  // the other lanes end
      throw;
    }
  });
}

/// Forward and backward over the batches of the replica that is number `turn` of this rank.
SumValues Updater::gather_replica(int64_t turn, int64_t replica, const UpdateWindow& window, DealtBatches& batches,
                                  int64_t lane, ReplicaSum& sum) {
  RunningSums sums(learner_.device);
  UpdateStep::Computing by{*lanes_.lane(lane).network, lane == 0 ? timer_ : nullptr};
  for (int64_t i = replica; i < window.batch_count; i += window.replicas) {
    if (i + window.replicas >= window.batch_count) {
      by.before_last_backward = [&] { sum.watch_backward(lanes_.lane(lane), turn); };
    }
    // The numbers that the network draws: of this batch of this replica, whoever computes it.
    core::Rng random(settings_.seed, core::RngPurpose::network, static_cast<uint64_t>(window.number),
                     static_cast<uint64_t>(i));
    const model::DrawScope draws(make_generator(random.next(), learner_.device));
    const data::Batch batch = batches.take(i);
    if (by.timer) by.timer->fetched();
    add_batch(batch, window, i, by, sums);
  }
  return sums.read();
}

/// Gradients, buffers and sums become those of all replicas; returns their images. Nothing where memory ran out on any
/// rank.
std::optional<int64_t> Updater::exchange(ReplicaSum& sum, bool ran_out_of_memory) {
  if (timer_) timer_->done(StepPart::backward);
  if (sum.agree(ran_out_of_memory)) return std::nullopt;
  sum.finish();
  if (timer_ && group_) {
    timer_->exchanged(rank_sum_->under_way(), group_->bytes_sent() - sent_before_);
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
                           const UpdateStep::Computing& by, RunningSums& sums) {
  if (!can_train_on(batch, by.network)) return 0;
  const Mix mix = draw_mix(settings_.mix, window.epoch, window.first_batch + batch_in_window, batch.images.size(-1),
                           batch.images.size(-2));
  // The short batch at the end of an epoch is not worth cuDNN's search for its shape.
  std::optional<NoSearchScope> no_search;
  if (batch.image_count() < window.batch_size) no_search.emplace();
  UpdateStep::Computing watched = by;
  watched.watcher = watcher_;
  watched.batch_in_window = batch_in_window;
  if (suits_graph(batch, window)) watched.graph = &*graph_;
  const Forward out = step_.accumulate(watched, batch, window.planned_images, mix);
  sums.add(out.loss_sum, task_.score_sum(out.outputs, out.scored_against), batch.image_count());  // on the device
  if (by.timer) by.timer->done(StepPart::other);
  return batch.image_count();
}

void Updater::use_graphs(bool use) {
  if (graph_ && uses_graph_ && !use) graph_->forget();
  uses_graph_ = use;
}

/// All of a full batch, in one micro-batch, that nobody looks at on its way.
bool Updater::suits_graph(const data::Batch& batch, const UpdateWindow& window) const {
  return graph_ && uses_graph_ && window.replicas == 1 && !watcher_ && step_.micro_batches() == 1 &&
         batch.image_count() == window.batch_size && batch.planned_images == window.batch_size;
}

/// Whether enough of `batch` is left once bad images are skipped. That is a matter of the data alone, so a resumed run
/// leaves out the same batches.
bool Updater::can_train_on(const data::Batch& batch, model::ImageModel& network) {
  if (batch.image_count() != 1) return batch.image_count() > 0;
  const core::MutexLock lock(one_image_mutex_);
  if (!trains_on_one_) trains_on_one_ = trains_on_one_image(network, batch.images, settings_.step.precision);
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
    if (!is_one_replica(window)) sum.emplace(learner_, lanes_, window.replicas, other_ranks());
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
    lanes_.forget_gradients();
    if (graph_) graph_->forget();  // its memory may be what is missing
    before.restore();
    sums_ = sums_before;
    release_unused_memory(learner_.device);
    trim_activation_arena();
    split_batches(window, cause);
    feed.go_back_to(window);
  }
}

void Updater::split_batches(const UpdateWindow& window, const std::string& cause) {
  const int64_t micro_batches = step_.micro_batches(), batch = window.batch_size;
  if (batch / micro_batches < 4) {
    throw core::Error(core::ErrorKind::out_of_memory,
                      core::format("out of memory at update {} with {} images at a time: {}", window.number + 1,
                                   std::max<int64_t>(1, batch / micro_batches), cause),
                      "choose a smaller --img-size or --model, or --grad-checkpointing; train plan says what fits");
  }
  step_.set_micro_batches(2 * micro_batches);
  core::log_warning(
      "out of memory at update {} ({}): it is done again, and from here on each batch of {} is computed in {} "
      "micro-batches of {}; an update sees as many images as before",
      window.number + 1, cause, batch, 2 * micro_batches, batch / (2 * micro_batches));
}

}  // namespace stoker::engine
