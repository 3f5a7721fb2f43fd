// SPDX-License-Identifier: Apache-2.0
// Where the time of each rank of a run goes, side by side, as plain values. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker::engine {

/// Of one rank, since an epoch began: seconds of all updates together. Differences are those of a window.
struct RankTotals {
  std::string host;
  int64_t updates = 0;
  double update = 0;          ///< from the start of one to the start of the next
  double wait = 0;            ///< for the loader
  double exchange = 0;        ///< waiting for the other ranks: for sums, and for those that come later
  double records = 0;         ///< reports and checkpoints, which rank 0 alone writes
  double least_exchange = 0;  ///< of each update, what the rank that waited least has waited; the same on all ranks
};
RankTotals difference(const RankTotals& now, const RankTotals& before);

/// Of one rank in a window. Seconds per update.
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
  /// Of the time, 0 to 1: what in each update the rank that waits least for the others waits. The last to come waits
  /// for the exchange alone.
  double exchange_share = 0;
  double exchange_seconds = 0;  ///< the same per update
  double waiting_share = 0;     ///< likewise: what a rank, on average, waits longer than that, for whoever comes last
  int64_t slowest = 0;          ///< rank whose own work takes longest
  std::string slowest_host;
  double slowest_seconds = 0;  ///< of its work per update
  double others_seconds = 0;   ///< mean of the other ranks
  /// How much longer than the others: 0.1 is 10 %.
  double slowest_excess() const { return others_seconds > 0 ? slowest_seconds / others_seconds - 1 : 0; }
};

/// By rank; empty where a rank has no update in the window.
std::vector<RankTimes> rank_times(const std::vector<RankTotals>& now, const std::vector<RankTotals>& before);
/// Nothing for fewer than two ranks.
std::optional<RankSummary> rank_summary(const std::vector<RankTimes>& ranks);

}  // namespace stoker::engine
