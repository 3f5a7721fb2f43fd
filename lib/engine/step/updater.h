// SPDX-License-Identifier: Apache-2.0
// One optimizer update, for all callers: takes the batches of a window from a feed, mixes them, gathers their
// gradients and applies these. Training, the estimate of an epoch's time and the benchmarks all go through here.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "data/feed/device_feed.h"
#include "engine/group/group.h"
#include "engine/run/plan.h"
#include "engine/step/gradient_hooks.h"
#include "engine/step/mixup.h"
#include "engine/step/replica_sum.h"
#include "engine/step/update_step.h"
#include "engine/task/metrics.h"
#include "model/layers/random_source.h"

namespace stoker::engine {

// Where updates take their batches from: the loader's epochs, or one batch over and over.

class BatchFeed {
 public:
  virtual ~BatchFeed() = default;
  /// The next batch; every image of it may have been skipped. `may_stop`: throws core::StopRequested once a stop is
  /// requested, before anything is taken; else still waits.
  virtual data::Batch next(bool may_stop) = 0;
  /// Goes back to the first batch of `window`, whose update is done again.
  virtual void rewind_to(const UpdateWindow& window) = 0;
};

/// The batches of one epoch after the other, those that are this rank's own; begin_epoch() comes before the first of
/// each.
class EpochFeed : public BatchFeed {
 public:
  explicit EpochFeed(data::DeviceFeed& feed, int64_t ranks = 1) : feed_(feed), ranks_(ranks) {}
  /// `first_batch`: of its own.
  void begin_epoch(int64_t epoch, int64_t first_batch) { feed_.begin_epoch(epoch, first_batch); }
  data::Batch next(bool may_stop) override;
  void rewind_to(const UpdateWindow& window) override {
    begin_epoch(window.epoch, window.first_batch / ranks_);  // all updates before it are full
  }

 private:
  data::DeviceFeed& feed_;
  const int64_t ranks_;
};

/// Gives one batch again and again; it stays on the device.
class RepeatedBatch : public BatchFeed {
 public:
  explicit RepeatedBatch(data::Batch batch) : batch_(std::move(batch)) {}
  data::Batch next(bool may_stop) override;
  void rewind_to(const UpdateWindow&) override {}

 private:
  data::Batch batch_;
};

struct UpdaterSettings {
  UpdateSettings step;
  MixSettings mix;
  uint64_t seed = 0;  ///< seed of the network's random numbers where there are several replicas
  /// Out of memory: compute each batch in twice as many micro-batches and do the update again.
  bool auto_micro_batch = false;
  RankSum::Order sum_order = RankSum::Order::exact;  ///< over ranks
  bool overlap = true;  ///< gradients are summed over ranks while others are computed; each stage of the network runs
                        ///< once in a backward pass
  /// Until this update those of the optimizer's parameters that thaw are frozen, with their batch norms at rest.
  int64_t thaws_at = 0;
  /// Batch norms see the batches of all ranks, each of which holds one replica: no overlap, no micro-batches.
  bool shares_norms = false;
  bool requires_graphs = false;  ///< full batches are recorded at once, and a record that fails is an error; else they
                                 ///< are while use_graphs() is on
};

/// One thread. `learner` is in training mode whenever update() is called.
class Updater {
 public:
  /// `timer` measures where the time goes; may be absent.
  /// `group`: whose ranks do each update together. `graphs`: records on the learner's device; null: nothing is
  /// recorded. All are borrowed.
  Updater(const UpdaterSettings& settings, const Task& task, Learner& learner, StepTimer* timer = nullptr,
          Group& group = alone(), GraphRunner* graphs = nullptr);

  /// Does the update of `window`, whose first batch is the next one of `feed`; returns how many images had a part in
  /// it. Their losses and scores are added to sums(). An update that has begun is finished: throws core::StopRequested
  /// only before its first batch, when nothing has changed. No host sync with fused optimizers.
  ///
  /// With several replicas each has its own batches, its own batch statistics, and its own random numbers in the
  /// network, which are a function of (seed, update, batch, replica). `feed` gives the batches of own_replicas(),
  /// those of one behind those of the other. Gradients are summed, and changes of running statistics averaged, in a
  /// tree that depends on the number of replicas alone.
  ///
  /// In a group every rank makes the same calls with the same window, and computes its share of the replicas; their
  /// number is a multiple of that of the ranks. All ranks end with the same weights, buffers, sums() and number of
  /// images. A stop is then left to whoever calls: a rank must not leave an update that the others wait in. Throws
  /// Error{peer_lost}.
  ///
  /// Left out are skipped images, and a batch that skipping left with one image where batch norm cannot train on it;
  /// the gradient is the mean over the others. When memory runs out and auto_micro_batch is on, everything is put back
  /// to where the update began, batches are computed in twice as many micro-batches from here on, and the update is
  /// done again: it is bit-identical to a run that had that many micro-batches from this update on. Throws
  /// Error{out_of_memory} when micro-batches of two images do not fit.
  int64_t update(BatchFeed& feed, const UpdateWindow& window, const optim::UpdateRates& rates);

  /// Makes the running statistics of all batch norms that train the mean of those of the batches of `windows`, which
  /// `feed` goes back to: with the weights as they are, and again with their average, without a gradient, unmixed. What
  /// they were is in Learner::statistics_before. In a group every rank makes the call. Bits depend on the windows and
  /// the number of replicas alone. Throws core::StopRequested, then everything is as it was.
  void measure_statistics(BatchFeed& feed, const std::vector<UpdateWindow>& windows);

  const Task& task() const { return task_; }
  Learner& learner() { return learner_; }

  /// Over all updates since they were reset or restored; on the device until they are read.
  RunningSums& sums() { return sums_; }
  const RunningSums& sums() const { return sums_; }

  /// In how many micro-batches each batch is computed; see UpdateStep::set_micro_batches.
  int64_t micro_batches() const { return step_.micro_batches(); }
  void set_micro_batches(int64_t micro_batches) { step_.set_micro_batches(micro_batches); }
  /// Looks on from the next update on; borrowed. null: none.
  void set_watcher(StepWatcher* watcher) { watcher_ = watcher; }
  /// Whether full batches are replayed from a record of what the host launched for one of them. From the next update
  /// on; without effect where nothing can be recorded. No bit depends on it.
  void use_graphs(bool use);
  /// null where nothing can be recorded: without a runner, or with several replicas.
  const StepGraph* graph() const { return graph_ ? &*graph_ : nullptr; }
  /// See UpdateStep::gradient_norm.
  const torch::Tensor& gradient_norm() const { return step_.gradient_norm(); }

 private:
  void freeze_or_thaw(int64_t update);
  int64_t gather(BatchFeed& feed, const UpdateWindow& window);
  int64_t gather_once(BatchFeed& feed, const UpdateWindow& window);
  int64_t gather_or_split(BatchFeed& feed, const UpdateWindow& window);
  void gather_replicas(BatchFeed& feed, const UpdateWindow& window, ReplicaSum& sum);
  void gather_shared(BatchFeed& feed, const UpdateWindow& window, ReplicaSum& sum);
  model::DrawScope draws_of(const UpdateWindow& window, int64_t batch) const;
  void measure_once(BatchFeed& feed, const std::vector<UpdateWindow>& windows);
  void see(BatchFeed& feed, const UpdateWindow& window);
  void stand_in(const std::vector<int64_t>& shape);
  OtherRanks other_ranks() { return {group_, rank_sum_ ? &*rank_sum_ : nullptr, hooks_ ? &*hooks_ : nullptr}; }
  std::optional<int64_t> exchange(ReplicaSum& sum, bool ran_out_of_memory);
  int64_t add_batch(const data::Batch& batch, const UpdateWindow& window, int64_t batch_in_window, RunningSums& sums,
                    const std::function<void()>& before_last_backward = {});
  bool suits_graph(const data::Batch& batch, const UpdateWindow& window) const;
  void split_batches(const UpdateWindow& window, const std::string& cause);
  bool is_one_replica(const UpdateWindow& window) const { return window.replicas == 1 && group_.is_alone(); }
  bool can_train_on(const data::Batch& batch);

  UpdaterSettings settings_;
  const Task& task_;
  Learner& learner_;
  StepTimer* const timer_;
  StepWatcher* watcher_ = nullptr;
  Group& group_;
  const RankShare share_;
  UpdateStep step_;
  std::optional<StepGraph> graph_;
  bool uses_graph_ = false;
  std::optional<RankSum> rank_sum_;     ///< in a group
  std::optional<GradientHooks> hooks_;  ///< in a group, where gradients are summed while others are computed
  int64_t sent_before_ = 0;             ///< bytes to other ranks, before the update
  RunningSums sums_;
  bool is_frozen_ = false;
  std::optional<bool> trains_on_one_;  ///< whether the network can train on one image; tried when such a batch comes
};

}  // namespace stoker::engine
