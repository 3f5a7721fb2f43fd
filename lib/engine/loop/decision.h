// SPDX-License-Identifier: Apache-2.0
// What the loop does next: stop, save, end. Decided in one place once per update, so that the ranks of a group can
// share what one of them decides. Torch-free.
#pragma once

#include <optional>

#include "engine/run/cadence.h"
#include "engine/run/plan.h"

namespace stoker::engine {

struct Decision {
  bool stops = false;               ///< a stop was asked for: the run is saved and ends
  std::optional<StopReason> limit;  ///< that is reached: the epoch is validated, the run is saved and ends
  bool saves = false;               ///< a checkpoint is due or was asked for
};

/// From this process's signals, clock and counts. One thread.
class Decisions {
 public:
  Decisions(const RunLimits& limits, config::Interval save_every) : limits_(limits), save_every_(save_every) {}

  /// Once after every update. Of an epoch's last update only the stop is decided: the rest waits for after_epoch().
  Decision after_update(const RunProgress& at, bool is_last_of_epoch);
  /// Once at an epoch's end, with `at` moved on to the next epoch, or left in this one that a limit cut short.
  Decision after_epoch(const RunProgress& at);

 private:
  RunLimits limits_;
  Cadence save_every_;
};

}  // namespace stoker::engine
