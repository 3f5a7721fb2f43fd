// SPDX-License-Identifier: Apache-2.0
// What the loop does next: stop, save, end. Decided in one place once per update; in a group all ranks decide the same.
#pragma once

#include <optional>

#include "engine/group/group.h"
#include "engine/run/cadence.h"
#include "engine/run/plan.h"

namespace stoker::engine {

struct Decision {
  bool stops = false;               ///< a stop was asked for: the run is saved and ends
  std::optional<StopReason> limit;  ///< that is reached: the epoch is validated, the run is saved and ends
  bool reports = false;             ///< a report is due, by rank 0's clock
  bool saves = false;               ///< a checkpoint is due or was asked for
  double train_seconds = 0;         ///< of the run, as rank 0's clock has it; see RunProgress
  int64_t bad_samples = 0;          ///< the most that any rank counts
  double waited = 0;                ///< seconds: the least that any rank has waited for the others
};

/// From this process's signals, clock and counts. Every rank calls this after the same updates, and all get the same
/// result: a stop or a save that any rank wants, and the limit that rank 0 has reached, whose clock is that of the
/// run. One thread. Throws core::Error{peer_lost}.
class Decisions {
 public:
  Decisions(const RunLimits& limits, config::Interval save_every, config::Interval report_every, Group& group = alone())
      : limits_(limits), save_every_(save_every), report_every_(report_every), group_(group) {}

  /// Once after every update. Of an epoch's last update only stop and report are decided: the rest waits for
  /// after_epoch(). `bad_samples`: that this rank counts so far. `waited`: seconds, for other ranks in this update.
  Decision after_update(const RunProgress& at, bool is_last_of_epoch, int64_t bad_samples = 0, double waited = 0);
  /// Once at an epoch's end, with `at` moved on to the next epoch, or left in this one that a limit cut short.
  Decision after_epoch(const RunProgress& at);

 private:
  Decision own_after_update(const RunProgress& at, bool is_last_of_epoch);
  Decision own_after_epoch(const RunProgress& at);
  Decision agreed(const Decision& own) const;

  RunLimits limits_;
  Cadence save_every_, report_every_;
  Group& group_;
};

}  // namespace stoker::engine
