// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a run: images, batches, updates. Pure and torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/run/events.h"
#include "engine/run/run_progress.h"

namespace stoker::engine {

/// One optimizer update: the batches [first_batch, first_batch + batch_count) of an epoch. They are dealt to replicas
/// in turn: batch m of replica s is batch first_batch + m * replicas + s, as far as there is one.
struct UpdateWindow {
  int64_t epoch = 0;
  int64_t number = 0;      ///< updates of the run before it
  int64_t batch_size = 1;  ///< of a full batch
  int64_t first_batch = 0;
  int64_t batch_count = 0;
  int64_t replicas = 1;
  int64_t planned_images = 0;  ///< what the gradient is averaged over; bad images, when skipped, are fewer
};

/// An epoch has ceil(images / batch_size) batches (floor when the last short one is dropped) and
/// ceil(batches / (accumulation x replicas)) updates; the last window may be short, and so may its last batch.
struct EpochPlan {
  int64_t images = 0;        ///< per epoch, dropped ones left out
  int64_t batch_size = 1;    ///< images per batch
  int64_t batches = 0;       ///< per epoch
  int64_t accumulation = 1;  ///< batches per update and replica
  int64_t replicas = 1;

  int64_t batches_per_update() const { return accumulation * replicas; }
  int64_t updates() const { return (batches + batches_per_update() - 1) / batches_per_update(); }
  /// Of update number `update` of an epoch; number updates() is the empty window at the end.
  UpdateWindow window(int64_t epoch, int64_t update) const;
};

/// The ranks of a run and which of them this is. Rank r computes the replicas that are congruent to r modulo `count`.
struct RankShare {
  int64_t rank = 0;
  int64_t count = 1;  ///< of ranks; divides the number of replicas
};

/// The replicas of this rank, in the order in which it computes them: so that their sum in a binary tree, which adds
/// replica s to replica s + h for h = half of all, a quarter, down to 1, has few open parts at a time. Replicas that
/// are no power of two count as the next one, without those that there are not.
std::vector<int64_t> own_replicas(int64_t replicas, const RankShare& share);

/// The batches of `window` that this rank computes, as numbers within the window, in its order: one replica after the
/// other.
std::vector<int64_t> own_batches(const UpdateWindow& window, const RankShare& share);
/// The batches of an epoch that this rank computes, as numbers within it. All of them in order for one rank with one
/// replica.
std::vector<int64_t> own_batches(const EpochPlan& plan, const RankShare& share);
/// How many of own_batches() come before update number `update`.
int64_t own_batches_before(const EpochPlan& plan, const RankShare& share, int64_t update);

/// What ends a run besides the epochs; 0 means no limit.
struct RunLimits {
  int64_t epochs = 0;
  int64_t max_updates = 0;
  double max_seconds = 0;  ///< compared with RunProgress::train_seconds, which counts all processes of the run
  int64_t patience = 0;    ///< epochs without improvement
};

/// Why a run that stands at `at` has nothing left to do, or nothing when it has.
std::optional<StopReason> limit_reached(const RunLimits& limits, const RunProgress& at);

/// Whether update number `update`, from 1, has digests: every N-th, and the first.
constexpr bool digest_due(int64_t every, int64_t update) { return every > 0 && (update % every == 0 || update == 1); }

/// Updates of the whole run with `limits.max_updates` taken into account.
int64_t total_updates(const EpochPlan& plan, const RunLimits& limits);

}  // namespace stoker::engine
