// SPDX-License-Identifier: Apache-2.0
// Where the time of updates goes, as plain values. Torch-free, so that observers may read it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time/durations.h"
#include "data/loader/loader_stats.h"

namespace stoker::engine {

/// The parts of the training thread's time between the start of an update and the start of the next.
enum class StepPart {
  wait,       ///< for the loader
  copy,       ///< onto the device, or into normalised floats on the CPU
  forward,    ///< with the loss
  backward,   ///< and, of several replicas, adding what they found within this process
  exchange,   ///< waiting for the sums over ranks
  optimizer,  ///< with clipping, loss scaling and moving average
  report,     ///< reading figures from the device (the one host sync), showing and writing them
  save,       ///< checkpoints
  other       ///< the rest: sums, observers, limits
};
inline constexpr size_t kStepParts = 9;
inline constexpr std::array<const char*, kStepParts> kStepPartNames = {
    "wait", "copy", "forward", "backward", "exchange", "optimizer", "report", "save", "other"};

/// Seconds per update, by part.
struct StepParts {
  std::array<core::Spread, kStepParts> spreads;
  const core::Spread& operator[](StepPart part) const { return spreads[static_cast<size_t>(part)]; }
  core::Spread& operator[](StepPart part) { return spreads[static_cast<size_t>(part)]; }
};

/// Seconds per sample, by stage of a worker.
struct StageSpreads {
  core::Spread read, decode, resize, augment, write;
};

/// A window of updates: since the last report, or since the epoch began. Validation is not part of it.
struct StepTimings {
  int64_t updates = 0;
  double seconds = 0;       ///< duration of all updates together
  double wall_seconds = 0;  ///< from reading to reading: what the loader's and the CPU's figures are of
  core::Spread update;      ///< from the start of one to the start of the next
  StepParts parts;          ///< by the clock of the training thread
  core::Spread exchange;  ///< seconds per update in which sums over ranks were under way, also behind the backward pass
  double exchanged_bytes = 0;  ///< that this rank sent per update; 0 where it is alone
  bool has_device = false;
  double lag_seconds = 0;  ///< how long after the host the device comes to the start of an update; near 0: it waits for
                           ///< what the host launches
  StepParts device;        ///< by the clock of a CUDA device: `wait` and `copy` are one there, and all that it idles
  StageSpreads sample;
  data::LoaderStats loader;         ///< seconds and counts of the window; sizes as they are now
  double training_cpu_seconds = 0;  ///< CPU time of the training thread
  double process_cpu_seconds = 0;   ///< CPU time of all threads

  /// The parts that show where the time went: by the device's clock where it has one. The host runs ahead of a device:
  /// it may wait for data while the device computes, and its own forward and backward are times of launching.
  const StepParts& judged() const { return has_device ? device : parts; }
  /// Whether the device has nothing left to do when an update begins although the host did not wait for data: launching
  /// is what takes the time.
  bool is_launch_bound() const {
    constexpr double kCaughtUp = 0.1, kWaits = 0.05;  // shares of an update
    return has_device && update.mean_seconds > 0 && lag_seconds < kCaughtUp * update.mean_seconds &&
           parts[StepPart::wait].mean_seconds < kWaits * update.mean_seconds;
  }
  /// The share of the time of the updates, 0 to 1; by the clock of judged().
  double share(StepPart part) const {
    return update.mean_seconds > 0 ? judged()[part].mean_seconds / update.mean_seconds : 0;
  }
  /// Per update: forward, backward and optimizer, by the clock of judged().
  double computing_seconds() const {
    return judged()[StepPart::forward].mean_seconds + judged()[StepPart::backward].mean_seconds +
           judged()[StepPart::optimizer].mean_seconds;
  }
  /// The share of the time of sums over ranks that the training thread did not wait: 0 to 1; 0 where there were none.
  double hidden_exchange_share() const {
    if (exchange.mean_seconds <= 0) return 0;
    return std::clamp(1 - parts[StepPart::exchange].mean_seconds / exchange.mean_seconds, 0.0, 1.0);
  }
  /// Batches that were decoded and waiting when one was requested.
  double mean_queue() const {
    return loader.batches_requested > 0
               ? static_cast<double>(loader.ready_when_requested) / static_cast<double>(loader.batches_requested)
               : 0;
  }
};

// Where the time of each rank of a run goes, side by side, as plain values. Torch-free.

/// The times of one rank since an epoch began: seconds of all updates together. Differences are those of a window.
struct RankTotals {
  std::string host;
  int64_t updates = 0;
  double update = 0;          ///< from the start of one to the start of the next
  double wait = 0;            ///< for the loader
  double exchange = 0;        ///< waiting for the other ranks: for sums, and for those that come later
  double records = 0;         ///< reports and checkpoints, which rank 0 alone writes
  double least_exchange = 0;  ///< sum over updates of the shortest wait of any rank; the same on all ranks
};
RankTotals difference(const RankTotals& now, const RankTotals& before);

/// The times of one rank in a window. Seconds per update.
struct RankTimes {
  std::string host;
  double update = 0;
  double wait = 0;
  double exchange = 0;
  double work = 0;            ///< what it does by itself, with what it waits for data; reports and checkpoints left out
  double least_exchange = 0;  ///< as of RankTotals
};

/// A summary of the times of several ranks.
struct RankSummary {
  int64_t ranks = 0;
  /// The share, 0 to 1, of the time: what in each update the rank that waits least for the others waits. The last to
  /// come waits for the exchange alone.
  double exchange_share = 0;
  double exchange_seconds = 0;  ///< the same per update
  double waiting_share = 0;     ///< likewise: what a rank, on average, waits longer than that, for whoever comes last
  int64_t slowest = 0;          ///< rank whose own work takes longest
  std::string slowest_host;
  double slowest_seconds = 0;  ///< time of its own work per update
  double others_seconds = 0;   ///< mean of the other ranks
  /// How much longer than the others: 0.1 is 10 %.
  double slowest_excess() const { return others_seconds > 0 ? slowest_seconds / others_seconds - 1 : 0; }
};

/// By rank; empty where a rank has no update in the window.
std::vector<RankTimes> rank_times(const std::vector<RankTotals>& now, const std::vector<RankTotals>& before);
/// Nothing for fewer than two ranks.
std::optional<RankSummary> rank_summary(const std::vector<RankTimes>& ranks);

// Whether a run's updates are replayed from a record, decided from what they are measured to take. Without LibTorch.

/// Graphs spare launches, so they are tried where these take the time, once; and kept where updates become shorter by a
/// tenth at least, since a record takes memory.
class GraphTrial {
 public:
  /// Looks at a window of updates; one of too few is ignored. Returns whether those that follow are replayed.
  bool judge(const StepTimings& window);
  /// Whether both ways have been measured: stays true.
  bool is_decided() const { return state_ == State::decided; }
  /// Seconds per update, as measured; 0 where not yet.
  double launched_seconds() const { return launched_seconds_; }
  double replayed_seconds() const { return replayed_seconds_; }

 private:
  enum class State { watching, recording, comparing, decided };

  State state_ = State::watching;
  bool uses_graphs_ = false;
  double launched_seconds_ = 0, replayed_seconds_ = 0;
};

}  // namespace stoker::engine
