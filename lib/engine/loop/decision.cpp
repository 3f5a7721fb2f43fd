// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/decision.h"

#include "core/system/stop_signal.h"

namespace stoker::engine {

Decision Decisions::after_update(const RunProgress& at, bool is_last_of_epoch) {
  Decision decision;
  decision.stops = core::stop_requested();
  if (decision.stops || is_last_of_epoch) return decision;
  decision.limit = limit_reached(limits_, at);
  if (decision.limit) return decision;  // the run is saved in the end
  decision.saves = save_every_.due_after_update(at.updates);
  decision.saves = core::take_save_request() || decision.saves;
  return decision;
}

Decision Decisions::after_epoch(const RunProgress& at) {
  Decision decision;
  decision.limit = limit_reached(limits_, at);
  decision.stops = !decision.limit && core::stop_requested();  // a run that is done needs no stop
  decision.saves = save_every_.due_after_update(at.updates);
  decision.saves = save_every_.due_after_epoch(at.epoch) || decision.saves;
  decision.saves = core::take_save_request() || decision.saves;
  return decision;
}

}  // namespace stoker::engine
