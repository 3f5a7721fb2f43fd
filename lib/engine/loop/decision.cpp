// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/decision.h"

#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/system/stop_signal.h"

namespace stoker::engine {
namespace {

constexpr char kNoLimit = 0;  // else 1 + the reason

std::string encode(const Decision& decision) {
  const char limit = decision.limit ? static_cast<char>(1 + static_cast<int>(*decision.limit)) : kNoLimit;
  std::string bytes = {decision.stops ? '1' : '0', decision.saves ? '1' : '0', limit};
  bytes.append(reinterpret_cast<const char*>(&decision.train_seconds), sizeof(double));
  return bytes;
}

Decision decode(const std::string& bytes) {
  if (bytes.size() != 3 + sizeof(double))
    throw core::Error(core::ErrorKind::bug, "a decision of another rank has another size");
  Decision decision;
  decision.stops = bytes[0] == '1';
  decision.saves = bytes[1] == '1';
  if (bytes[2] != kNoLimit) decision.limit = static_cast<StopReason>(bytes[2] - 1);
  std::memcpy(&decision.train_seconds, bytes.data() + 3, sizeof(double));
  return decision;
}

}  // namespace

Decision Decisions::after_update(const RunProgress& at, bool is_last_of_epoch) {
  return agreed(own_after_update(at, is_last_of_epoch));
}

Decision Decisions::after_epoch(const RunProgress& at) { return agreed(own_after_epoch(at)); }

Decision Decisions::agreed(const Decision& own) const {
  if (group_ == nullptr || group_->size() == 1) return own;
  const std::vector<std::string> ranks = group_->gather(encode(own));
  Decision decision = decode(ranks.front());
  for (const std::string& bytes : ranks) {
    const Decision one = decode(bytes);
    decision.stops |= one.stops;
    decision.saves |= one.saves;
  }
  return decision;
}

Decision Decisions::own_after_update(const RunProgress& at, bool is_last_of_epoch) {
  Decision decision;
  decision.train_seconds = at.train_seconds;
  decision.stops = core::stop_requested();
  if (decision.stops || is_last_of_epoch) return decision;
  decision.limit = limit_reached(limits_, at);
  if (decision.limit) return decision;  // the run is saved in the end
  decision.saves = save_every_.due_after_update(at.updates);
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
  decision.saves = core::take_save_request() || decision.saves;
  return decision;
}

}  // namespace stoker::engine
