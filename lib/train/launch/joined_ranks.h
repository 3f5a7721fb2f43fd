// SPDX-License-Identifier: Apache-2.0
// The ranks of a run, joined, as the training command sees them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/group/group.h"
#include "engine/run/plan.h"
#include "train/failure/rank_location.h"

namespace stoker::train {

/// For the banner: where others can reach the ranks, and how often they were started.
std::vector<std::string> notes_of(const RankLocation& place, int64_t restarts);

class JoinedRanks {
 public:
  /// Alone.
  JoinedRanks() = default;
  /// Waits for the others. `stopped_code`: exit code after a stop. Throws Error{peer_lost}, {unavailable},
  /// core::StopRequested.
  JoinedRanks(const RankLocation& place, double timeout_seconds, int stopped_code);
  /// For ranks that have met already.
  JoinedRanks(const RankLocation& place, std::unique_ptr<engine::Group> group)
      : place_(place), group_(std::move(group)) {}

  engine::Group& group() const { return group_ ? *group_ : engine::alone(); }
  const RankLocation& place() const { return place_; }
  bool is_root() const { return place_.rank == 0; }
  engine::RankShare share() const { return {place_.rank, place_.size}; }
  /// The result of `choose` on rank 0, which alone calls it.
  std::string from_root(const std::function<std::string()>& choose) const;
  /// Waits until all ranks have come here.
  void wait_for_all() const {
    from_root([] { return ""; });
  }
  /// Throws Error{config} on all ranks, naming what differs, unless all ranks have the same values under the same
  /// names. No rank throws before all of them have it: one that ends earlier would be a lost rank to the others.
  void refuse_differences(const std::vector<std::pair<std::string, std::string>>& values) const;

 private:
  RankLocation place_;
  std::unique_ptr<engine::Group> group_;  ///< null: alone
};

}  // namespace stoker::train
