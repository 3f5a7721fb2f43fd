// SPDX-License-Identifier: Apache-2.0
#include "engine/run/cadence.h"

#include <cmath>

namespace stoker::engine {

using Unit = config::Interval::Unit;

Cadence::Cadence(config::Interval interval, const core::Clock& clock)
    : interval_(interval), clock_(&clock), last_(clock.now()) {}

bool Cadence::due_after_update(int64_t updates) {
  if (interval_.unit == Unit::updates) return updates % std::llround(interval_.amount) == 0;
  if (interval_.unit != Unit::seconds) return false;
  const double now = clock_->now();
  if (now - last_ < interval_.amount) return false;
  last_ = now;
  return true;
}

bool Cadence::due_after_epoch(int64_t epochs) const {
  return interval_.unit == Unit::epochs && epochs % std::llround(interval_.amount) == 0;
}

}  // namespace stoker::engine
