// SPDX-License-Identifier: Apache-2.0
// When something that happens every so often is due: `1e`, `2000u` or `10m`.
#pragma once

#include <cstdint>

#include "config/options.h"
#include "core/time/clock.h"

namespace stoker::engine {

class Cadence {
 public:
  /// Seconds are measured with `clock`, which outlives this object.
  explicit Cadence(config::Interval interval, const core::Clock& clock = core::machine_clock());

  /// After an update. Seconds are counted from construction or from the last time that this was true.
  bool due_after_update(int64_t updates);
  /// After an epoch; `epochs` have been finished.
  bool due_after_epoch(int64_t epochs) const;

 private:
  config::Interval interval_;
  const core::Clock* clock_;
  double last_;  ///< seconds of clock_
};

}  // namespace stoker::engine
