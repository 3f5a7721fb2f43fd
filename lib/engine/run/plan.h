// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a run: images, batches, updates. Pure and torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "config/options.h"
#include "core/time/clock.h"
#include "engine/run/events.h"
#include "engine/run/run_progress.h"

namespace stoker::engine {

/// One optimizer update: the batches [first_batch, first_batch + batch_count) of an epoch. They are distributed to
/// replicas in turn: batch m of replica s is batch first_batch + m * replicas + s, as far as there is one.
struct UpdateWindow {
  int64_t epoch = 0;
  int64_t number = 0;      ///< updates of the run before it
  int64_t batch_size = 1;  ///< images in a full batch
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
  /// The window of update number `update` of an epoch; number updates() is the empty window at the end.
  UpdateWindow window(int64_t epoch, int64_t update) const;
};

/// The ranks of a run and which of them this is. Rank r computes the replicas that are congruent to r modulo `count`.
struct RankShare {
  int64_t rank = 0;
  int64_t count = 1;  ///< number of ranks; divides the number of replicas
};

/// The replicas of this rank, in the order in which it computes them: so that their sum in a binary tree, which adds
/// replica s to replica s + h for h = half of all, a quarter, down to 1, has few open parts at a time. Replicas that
/// are not a power of two count as the next one, without those that there are not.
std::vector<int64_t> own_replicas(int64_t replicas, const RankShare& share);

/// The batches of `window` that this rank computes, as numbers within the window, in its order: one replica after the
/// other.
std::vector<int64_t> own_batches(const UpdateWindow& window, const RankShare& share);
/// The batches of an epoch that this rank computes, as numbers within it. All of them in order for one rank with one
/// replica.
std::vector<int64_t> own_batches(const EpochPlan& plan, const RankShare& share);
/// How many of own_batches() come before update number `update`.
int64_t own_batches_before(const EpochPlan& plan, const RankShare& share, int64_t update);

/// The first updates of an epoch, with as many images or a few more, by which running statistics are measured: those
/// in which every replica has all of its batches. `images` 0: none.
std::vector<UpdateWindow> statistics_windows(const EpochPlan& plan, int64_t epoch, int64_t images);

/// Limits of a run besides the epochs; 0 means no limit.
struct RunLimits {
  int64_t epochs = 0;
  int64_t max_updates = 0;
  double max_seconds = 0;  ///< compared with RunProgress::train_seconds, which counts all processes of the run
  int64_t patience = 0;    ///< compared with RunProgress::epochs_without_improvement
};

/// Why a run that stands at `at` has nothing left to do, or nothing when it has.
std::optional<StopReason> limit_reached(const RunLimits& limits, const RunProgress& at);

/// Whether update number `update`, from 1, has digests: every N-th, and the first.
constexpr bool digest_due(int64_t every, int64_t update) { return every > 0 && (update % every == 0 || update == 1); }

/// Updates of the whole run with `limits.max_updates` taken into account.
int64_t total_updates(const EpochPlan& plan, const RunLimits& limits);

// When something that happens every so often is due: `1e`, `2000u` or `10m`.

class Cadence {
 public:
  /// Seconds are measured with `clock`, which outlives this object.
  explicit Cadence(config::Interval interval, const core::Clock& clock = core::machine_clock());

  /// After an update; an amount that is not whole, as 0.25 of 13 updates, is rounded up. Seconds are counted from
  /// construction or from the last time that this was true.
  bool due_after_update(int64_t updates);
  /// After an epoch; `epochs` have been finished.
  bool due_after_epoch(int64_t epochs) const;

 private:
  config::Interval interval_;
  const core::Clock* clock_;
  double last_;  ///< seconds of clock_
};

// The order in which the parts of an update are added: a binary tree that depends on their number alone, so that the
// bits of a sum do not depend on who computes which part. Part s is added to part s + h, where h is half of the parts,
// then a quarter of them, down to 1; where their number is not a power of two, it counts as the next one, without the
// parts that there are not.

/// The parts [0, count) in an order in which two that are added come one after the other: each with its partner, each
/// pair with its partner, and so on. As many as the next power of two; those from `count` on are not there.
inline std::vector<int64_t> tree_places(int64_t count) {
  std::vector<int64_t> places = {0};
  for (int64_t step = 1; step < count; step *= 2) {
    std::vector<int64_t> pairs;
    for (const int64_t place : places) {
      pairs.push_back(place);
      pairs.push_back(place + step);
    }
    places = std::move(pairs);
  }
  return places;
}

/// Parts on their way to one sum. They may come in any order and from any thread.
template <typename Part>
class TreeSum {
 public:
  using Add = std::function<Part(Part, Part)>;  ///< must be commutative to the bit, as + of floats is

  explicit TreeSum(int64_t count) : count_(count) {
    while (width_ < count) width_ *= 2;
    for (int64_t width = width_; width > 0; width /= 2) slots_.emplace_back(static_cast<size_t>(width));
  }

  /// Part number `place`. With `add`, what can be added now is: that keeps few parts where they come in the order of
  /// tree_places(). Without, it is kept for fold().
  void put(int64_t place, std::optional<Part> part, const Add& add = {}) {
    for (size_t level = 0;; ++level) {
      const int64_t half = (width_ >> level) / 2, partner = place ^ half;
      if (half == 0 || !add || partner < count_) {
        std::optional<Part> other;
        {
          const std::lock_guard<std::mutex> lock(mutex_);
          std::optional<Part>* const found = half == 0 || !add ? nullptr : &slots_[level][static_cast<size_t>(partner)];
          if (!found || !*found) {
            slots_[level][static_cast<size_t>(place)] = std::move(part);
            return;
          }
          other = std::exchange(*found, std::nullopt);
        }
        part = partner < place ? add(std::move(*other), std::move(*part)) : add(std::move(*part), std::move(*other));
      }
      place &= half - 1;
    }
  }

  /// The sum of what `get(part)` gives of each part that is there, once all are; adds no part. May be called for
  /// different things at the same time.
  template <typename Get, typename AddValues>
  auto fold(const Get& get, const AddValues& add) const {
    return fold_from(slots_.size() - 1, 0, get, add);
  }

 private:
  /// The sum of the parts that are congruent to `place` modulo the width of this level.
  template <typename Get, typename AddValues>
  auto fold_from(size_t level, int64_t place, const Get& get, const AddValues& add) const
      -> decltype(get(std::declval<const Part&>())) {
    if (const std::optional<Part>& part = slots_[level][static_cast<size_t>(place)]) return get(*part);
    const int64_t partner = place + (width_ >> level);
    auto left = fold_from(level - 1, place, get, add);
    return partner < count_ ? add(std::move(left), fold_from(level - 1, partner, get, add)) : left;
  }

  const int64_t count_;
  int64_t width_ = 1;  ///< the next power of two
  std::mutex mutex_;
  std::vector<std::vector<std::optional<Part>>> slots_;  ///< by level, half as many on each as on the one before
};

}  // namespace stoker::engine
