// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/rank_ledger.h"

#include <unistd.h>

#include <utility>

#include "engine/group/message.h"

namespace stoker::engine {
namespace {

std::string host_name() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return host;
}

std::string bytes_of(const RankTotals& totals) {
  MessageWriter message;
  message.add(totals.host);
  message.add(totals.updates);
  for (const double seconds : {totals.update, totals.wait, totals.exchange, totals.records, totals.least_exchange})
    message.add(seconds);
  return message.bytes();
}

RankTotals totals_from(const std::string& bytes) {
  MessageReader message(bytes);
  RankTotals totals;
  totals.host = message.text();
  totals.updates = message.number();
  for (double* const seconds :
       {&totals.update, &totals.wait, &totals.exchange, &totals.records, &totals.least_exchange}) {
    *seconds = message.real();
  }
  return totals;
}

}  // namespace

RankLedger::RankLedger(Group& group) : group_(group), host_(host_name()) {}

void RankLedger::begin_epoch() {
  least_exchange_ = 0;
  now_.clear();
  at_report_.clear();
  at_recent_.clear();
}

void RankLedger::read(const StepTimings& so_far) {
  if (group_.is_alone()) return;  // there is no rank to compare with
  const auto total = [&](StepPart part) {
    return so_far.parts[part].mean_seconds * static_cast<double>(so_far.updates);
  };
  RankTotals own;
  own.host = host_;
  own.updates = so_far.updates;
  own.update = so_far.seconds;
  own.wait = total(StepPart::wait);
  own.exchange = total(StepPart::exchange);
  own.least_exchange = least_exchange_;
  own.records = total(StepPart::report) + total(StepPart::save);
  now_.clear();
  for (const std::string& of_rank : group_.gather(bytes_of(own))) now_.push_back(totals_from(of_rank));
}

std::vector<RankTimes> RankLedger::since_report() { return rank_times(now_, std::exchange(at_report_, now_)); }

std::vector<RankTimes> RankLedger::recent() { return rank_times(now_, std::exchange(at_recent_, now_)); }

std::vector<RankTimes> RankLedger::since_epoch_began() const { return rank_times(now_, {}); }

}  // namespace stoker::engine
