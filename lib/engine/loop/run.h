// SPDX-License-Identifier: Apache-2.0
// A run under way: where it stands, by which clock, and whether it goes on.
#pragma once

#include <chrono>
#include <optional>

#include "core/time/elapsed.h"
#include "engine/loop/decision.h"
#include "engine/run/run_progress.h"

namespace stoker::engine {

struct Run {
  explicit Run(const RunProgress& from) : at(from), seconds_before(from.train_seconds) {}

  RunProgress at;
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  const double seconds_before;    ///< of training by earlier processes
  bool is_cut_short = false;      ///< a limit was reached within the epoch, which is validated and stays under way
  std::optional<StopReason> end;  ///< why nothing more is trained; none: the run goes on

  double elapsed_seconds() const { return core::seconds_since(begin); }
  /// Training and validation, over all processes of the run.
  double train_seconds() const { return seconds_before + elapsed_seconds(); }
  /// Whether another update of the epoch follows.
  bool trains(int64_t updates_per_epoch) const {
    return !end && !is_cut_short && at.update_in_epoch < updates_per_epoch;
  }
  /// What was decided after an update. A stop ends the run where it is, a limit once the epoch is validated.
  void follow(const Decision& decision) {
    if (decision.limit) is_cut_short = true;
    if (decision.stops) end = StopReason::signal;
  }
};

}  // namespace stoker::engine
