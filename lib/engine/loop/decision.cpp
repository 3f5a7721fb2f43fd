// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/decision.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/system/stop_signal.h"
#include "engine/group/message.h"

namespace stoker::engine {
namespace {

std::string encode(const Decision& decision) {
  MessageWriter message;
  message.add(decision.stops);
  message.add(decision.reports);
  message.add(decision.saves);
  message.add(decision.evaluates);
  message.add(decision.limit.has_value());
  if (decision.limit) message.add(static_cast<int64_t>(*decision.limit));
  message.add(decision.train_seconds);
  message.add(decision.bad_samples);
  message.add(decision.waited);
  return message.bytes();
}

Decision decode(const std::string& bytes) {
  MessageReader message(bytes);
  Decision decision;
  decision.stops = message.flag();
  decision.reports = message.flag();
  decision.saves = message.flag();
  decision.evaluates = message.flag();
  if (message.flag()) decision.limit = static_cast<StopReason>(message.i64());
  decision.train_seconds = message.f64();
  decision.bad_samples = message.i64();
  decision.waited = message.f64();
  return decision;
}

}  // namespace

Decision Decisions::after_update(const RunProgress& at, bool is_last_of_epoch, int64_t bad_samples, double waited) {
  Decision own = own_after_update(at, is_last_of_epoch);
  own.bad_samples = bad_samples;
  own.waited = waited;
  return agreed(own);
}

Decision Decisions::after_epoch(const RunProgress& at) { return agreed(own_after_epoch(at)); }

Decision Decisions::after_evaluation(const RunProgress& at) const {
  Decision own;
  own.train_seconds = at.train_seconds;
  own.limit = limit_reached(limits_, at);
  return agreed(own);
}

bool Decisions::owes_evaluation(const RunProgress& at) const {
  if (evaluate_every_.unit == config::Interval::Unit::seconds) {
    return at.train_seconds - at.evaluated_seconds >= evaluate_every_.amount;
  }
  return at.updates != at.evaluated_updates && Cadence(evaluate_every_).due_after_update(at.updates);
}

Decision Decisions::agreed(const Decision& own) const {
  const std::vector<std::string> ranks = group_.gather(encode(own));
  Decision decision = decode(ranks.front());
  for (const std::string& bytes : ranks) {
    const Decision one = decode(bytes);
    decision.stops |= one.stops;
    decision.saves |= one.saves;
    decision.bad_samples = std::max(decision.bad_samples, one.bad_samples);
    decision.waited = std::min(decision.waited, one.waited);
  }
  return decision;
}

Decision Decisions::own_after_update(const RunProgress& at, bool is_last_of_epoch) {
  Decision decision;
  decision.train_seconds = at.train_seconds;
  decision.reports = report_every_.due_after_update(at.updates);
  decision.stops = core::stop_requested();
  decision.evaluates = owes_evaluation(at);
  if (decision.stops || is_last_of_epoch) return decision;
  decision.limit = limit_reached(limits_, at);
  if (decision.limit) return decision;  // the run is saved in the end
  decision.saves = save_every_.due_after_update(at.updates);
  decision.saves = keep_every_.due_after_update(at.updates) || decision.saves;
  decision.saves = core::take_save_request() || decision.saves;
  return decision;
}

Decision Decisions::own_after_epoch(const RunProgress& at) {
  Decision decision;
  decision.train_seconds = at.train_seconds;
  decision.limit = limit_reached(limits_, at);
  decision.stops = !decision.limit && core::stop_requested();  // a run that is done needs no stop
  decision.saves = save_every_.due_after_update(at.updates);
  decision.saves = save_every_.due_after_epoch(at.epoch) || decision.saves;
  decision.saves = keep_every_.due_after_update(at.updates) || decision.saves;
  decision.saves = core::take_save_request() || decision.saves;
  return decision;
}

}  // namespace stoker::engine
