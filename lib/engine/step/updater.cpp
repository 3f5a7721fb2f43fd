// SPDX-License-Identifier: Apache-2.0
#include "engine/step/updater.h"

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/system/stop_signal.h"
#include "core/text/json.h"
#include "engine/device/device.h"
#include "engine/device/precision.h"
#include "engine/device/random_state.h"
#include "engine/memory/activation_arena.h"
#include "engine/step/state_snapshot.h"
#include "model/freeze.h"
#include "model/layers/batch_norm.h"
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
    if (settings.overlap && !settings.shares_norms) hooks_.emplace(parameters_of(learner));
  }
  if (graphs && group.is_alone()) {
    graph_.emplace(*graphs, learner, settings.requires_graphs);
    uses_graph_ = settings.requires_graphs;
  }
  if (settings.auto_micro_batch) learner.optimizer->state();  // made now: nothing is allocated once weights move
}

int64_t Updater::update(BatchFeed& feed, const UpdateWindow& window, const optim::UpdateRates& rates) {
  if (timer_) timer_->begin_update(window.number);
  freeze_or_thaw(window.number);
  sent_before_ = group_.bytes_sent();
  const int64_t images = settings_.auto_micro_batch ? gather_or_split(feed, window) : gather_once(feed, window);
  if (images > 0 && images < window.planned_images) step_.correct_mean(window.planned_images, images);
  if (watcher_ && images > 0) watcher_->on_gradients(learner_);
  step_.apply(rates);
  return images;
}

/// A function of the number of the update alone, so that a resumed run does the same.
void Updater::freeze_or_thaw(int64_t update) {
  if (settings_.thaws_at == 0) return;
  if (update == settings_.thaws_at) learner_.optimizer->thaw();
  const bool is_frozen = update < settings_.thaws_at;
  if (is_frozen == is_frozen_) return;
  is_frozen_ = is_frozen;
  for (const optim::NamedParameter& parameter : learner_.optimizer->parameters()) {
    torch::Tensor tensor = parameter.tensor;
    if (parameter.thaws) tensor.set_requires_grad(!is_frozen);
  }
  model::rest_frozen_norms(*learner_.model);
  learner_.model->train();
  trains_on_one_.reset();
  if (graph_) graph_->forget();
  if (!is_frozen) core::log_info("all parameters are trained from update {} on", update + 1);
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
  if (settings_.shares_norms && !group_.is_alone()) return gather_shared(feed, window, sum);
  const std::vector<int64_t> own = own_replicas(window.replicas, share_);
  bool may_stop = group_.is_alone();
  for (int64_t turn = 0; turn < static_cast<int64_t>(own.size()); ++turn) {
    const int64_t replica = own[static_cast<size_t>(turn)];
    RunningSums sums(learner_.device);
    sum.begin_replica(turn);
    for (int64_t i = replica; i < window.batch_count; i += window.replicas) {
      const model::DrawScope draws = draws_of(window, i);
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

/// The numbers that the network draws: of this batch of this replica, whoever computes it.
model::DrawScope Updater::draws_of(const UpdateWindow& window, int64_t batch) const {
  core::Rng random(settings_.seed, core::RngPurpose::network, static_cast<uint64_t>(window.number),
                   static_cast<uint64_t>(batch));
  return model::DrawScope(make_generator(random.next(), learner_.device));
}

/// Forward and backward over the only replica of this rank, in step with the other ranks: where one of them has no
/// batch left, or lost all images of it, it computes a stand-in.
void Updater::gather_shared(BatchFeed& feed, const UpdateWindow& window, ReplicaSum& sum) {
  RunningSums sums(learner_.device);
  sum.begin_replica(0);
  for (int64_t first = 0; first < window.batch_count; first += window.replicas) {
    const int64_t i = first + group_.rank();
    const model::DrawScope draws = draws_of(window, i);
    data::Batch batch;
    if (i < window.batch_count) batch = feed.next(/*may_stop=*/false);
    if (timer_) timer_->fetched();
    core::Json own = core::Json::array({batch.image_count()});
    for (int64_t dim = 1; batch.image_count() > 0 && dim < batch.images.dim(); ++dim)
      own.push_back(batch.images.size(dim));
    std::vector<int64_t> shape;  // of an image that some rank has
    int64_t images = 0;
    for (const std::string& bytes : group_.gather(own.dump())) {
      const auto theirs = core::parse_json(bytes, "another rank").get<std::vector<int64_t>>();
      images += theirs.at(0);
      if (theirs[0] > 0) shape = theirs;
    }
    if (images < 2) continue;  // batch norm cannot train on one
    model::SharedBatch shared{group_.rank(), group_.size(), batch.image_count() > 0, {}};
    shared.sum = [this](const torch::Tensor& part) {
      const torch::Tensor there = group_.sums_on(part.device()) ? part : part.to(at::kCPU);
      group_.sum({there});
      if (!there.is_same(part)) part.copy_(there);
    };
    const model::SharedBatchScope scope(&shared);
    if (shared.has_images) {
      add_batch(batch, window, i, sums);
    } else {
      shape[0] = 1;
      stand_in(shape);
    }
  }
  const SumValues values = sums.read();
  sum.end_replica(0, {values.loss_sum, values.score_sum, values.images});
}

/// Both passes over an image of zeros, which add zeros to all gradients.
void Updater::stand_in(const std::vector<int64_t>& shape) {
  torch::Tensor outputs;
  {
    const AutocastScope autocast(settings_.step.precision);
    outputs = learner_.model->forward(at::zeros(shape, torch::TensorOptions(learner_.device)));
  }
  outputs.backward(at::zeros_like(outputs));
}

namespace {

/// The running statistics of batch norms that train, by name, as they are.
void append_statistics(const char* prefix, const torch::nn::Module& model, std::vector<model::NamedTensor>& all) {
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    const auto* const norm = item.value()->as<torch::nn::BatchNorm2d>();
    if (norm == nullptr || !norm->is_training()) continue;
    all.push_back({prefix + item.key() + ".running_mean", norm->running_mean.clone()});
    all.push_back({prefix + item.key() + ".running_var", norm->running_var.clone()});
  }
}

}  // namespace

void Updater::measure_statistics(BatchFeed& feed, const std::vector<UpdateWindow>& windows) {
  const torch::NoGradGuard no_gradients;
  std::vector<model::NamedTensor> before;
  const BufferSnapshot buffers(*learner_.model);
  try {
    append_statistics(kStatistics, *learner_.model, before);
    measure_once(feed, windows);
    if (learner_.ema) {
      const optim::AveragedWeights averaged(learner_.ema.get());
      append_statistics(kStatisticsOfAverage, *learner_.model, before);
      measure_once(feed, windows);
    }
  } catch (...) {
    buffers.restore();
    throw;
  }
  learner_.statistics_before = std::move(before);
}

/// With the weights that the network has.
void Updater::measure_once(BatchFeed& feed, const std::vector<UpdateWindow>& windows) {
  using Momentum = std::decay_t<decltype(std::declval<torch::nn::BatchNorm2dOptions&>().momentum())>;
  const auto norms = model::batch_norms_of(*learner_.model);
  const BufferSnapshot before(*learner_.model);
  std::vector<Momentum> momenta;
  std::vector<torch::Tensor> statistics, sums, counters, counts;
  for (const auto& norm : norms) {
    momenta.push_back(norm->options.momentum());
    if (!norm->is_training()) continue;
    norm->options.momentum(Momentum());  // the mean of all batches that were seen
    statistics.insert(statistics.end(), {norm->running_mean, norm->running_var});
    counters.push_back(norm->num_batches_tracked);
    counts.push_back(norm->num_batches_tracked.clone());
  }
  for (const torch::Tensor& one : statistics) sums.push_back(at::zeros_like(one, at::kDouble));
  const auto put_back = [&] {
    for (size_t i = 0; i < norms.size(); ++i) norms[i]->options.momentum(momenta[i]);
  };
  try {
    feed.rewind_to(windows.front());
    for (const UpdateWindow& window : windows) {
      for (torch::Tensor& one : statistics) one.zero_();
      for (torch::Tensor& counter : counters) counter.zero_();
      see(feed, window);
      for (size_t i = 0; i < sums.size(); ++i) sums[i].add_(statistics[i]);
    }
  } catch (...) {
    put_back();
    before.restore();
    throw;
  }
  put_back();
  const auto count = static_cast<double>(windows.size());
  for (size_t i = 0; i < sums.size(); ++i) statistics[i].copy_(sums[i].div_(count));
  for (size_t i = 0; i < counters.size(); ++i) counters[i].copy_(counts[i]);
}

/// Forward passes over the window, whose running statistics become the mean over replicas.
void Updater::see(BatchFeed& feed, const UpdateWindow& window) {
  ReplicaSum sum(learner_, window.replicas, other_ranks());
  const std::vector<int64_t> own = own_replicas(window.replicas, share_);
  for (int64_t turn = 0; turn < static_cast<int64_t>(own.size()); ++turn) {
    sum.begin_replica(turn);
    for (int64_t i = own[static_cast<size_t>(turn)]; i < window.batch_count; i += window.replicas) {
      const model::DrawScope draws = draws_of(window, i);
      const data::Batch batch = feed.next(/*may_stop=*/group_.is_alone());
      if (!can_train_on(batch)) continue;
      const AutocastScope autocast(settings_.step.precision);
      learner_.model->forward(batch.images);
    }
    sum.end_replica(turn, {});
  }
  sum.agree(/*ran_out_of_memory=*/false);
  sum.finish();
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
  if (model::shared_batch() == nullptr && !can_train_on(batch)) return 0;
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
  if (!trains_on_one_) trains_on_one_ = trains_on_one_image(*learner_.model, batch.images);
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
