// SPDX-License-Identifier: Apache-2.0
// Keeps account of where the time of all ranks goes.
#pragma once

#include <string>
#include <vector>

#include "engine/group/group.h"
#include "engine/run/rank_times.h"
#include "engine/run/step_times.h"

namespace stoker::engine {

/// All ranks make the same calls in the same order. Where this rank is alone, nothing is exchanged and all lists are
/// empty. Lists are by rank, the same on all ranks but for windows that one rank alone has asked for.
class RankLedger {
 public:
  explicit RankLedger(Group& group);

  void begin_epoch();
  /// Of an update: seconds that the rank that waited least for the others has waited.
  void add_exchange(double seconds) { least_exchange_ += seconds; }
  /// One small exchange. `so_far`: of this rank, since the epoch began. Throws core::Error{peer_lost}.
  void read(const StepTimings& so_far);

  // As of the last read().
  std::vector<RankTimes> since_report();  ///< or since the epoch began; begins the next window
  std::vector<RankTimes> recent();  ///< since the last call, or the epoch's begin; need not be called on all ranks
  std::vector<RankTimes> since_epoch_began() const;

 private:
  Group& group_;
  const std::string host_;
  double least_exchange_ = 0;
  std::vector<RankTotals> now_, at_report_, at_recent_;
};

}  // namespace stoker::engine
