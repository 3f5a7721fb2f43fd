// SPDX-License-Identifier: Apache-2.0
#include "engine/run/step_times.h"

#include <algorithm>

namespace stoker::engine {

RankTotals difference(const RankTotals& now, const RankTotals& before) {
  return {now.host,
          now.updates - before.updates,
          now.update - before.update,
          now.wait - before.wait,
          now.exchange - before.exchange,
          now.records - before.records,
          now.least_exchange - before.least_exchange};
}

std::vector<RankTimes> rank_times(const std::vector<RankTotals>& now, const std::vector<RankTotals>& before) {
  std::vector<RankTimes> list;
  for (size_t rank = 0; rank < now.size(); ++rank) {
    const RankTotals window = rank < before.size() ? difference(now[rank], before[rank]) : now[rank];
    if (window.updates <= 0) return {};
    const auto updates = static_cast<double>(window.updates);
    RankTimes times;
    times.host = window.host;
    times.update = window.update / updates;
    times.wait = window.wait / updates;
    times.exchange = window.exchange / updates;
    times.work = std::max(0.0, (window.update - window.exchange - window.records) / updates);
    times.least_exchange = window.least_exchange / updates;
    list.push_back(times);
  }
  return list;
}

std::optional<RankSummary> rank_summary(const std::vector<RankTimes>& ranks) {
  if (ranks.size() < 2) return std::nullopt;
  RankSummary summary;
  summary.ranks = static_cast<int64_t>(ranks.size());
  const auto slowest = std::max_element(ranks.begin(), ranks.end(),
                                        [](const RankTimes& a, const RankTimes& b) { return a.work < b.work; });
  double work = 0, update = 0, exchange = 0;
  summary.exchange_seconds = slowest->least_exchange;
  for (const RankTimes& rank : ranks) {
    exchange += rank.exchange / static_cast<double>(ranks.size());
    work += rank.work;
    update += rank.update / static_cast<double>(ranks.size());
  }
  summary.exchange_share = update > 0 ? std::clamp(summary.exchange_seconds / update, 0.0, 1.0) : 0;
  const double waiting = exchange - summary.exchange_seconds;
  summary.waiting_share = update > 0 ? std::clamp(waiting / update, 0.0, 1.0) : 0;
  summary.slowest = slowest - ranks.begin();
  summary.slowest_host = slowest->host;
  summary.slowest_seconds = slowest->work;
  summary.others_seconds = (work - slowest->work) / static_cast<double>(ranks.size() - 1);
  return summary;
}

namespace {

constexpr int64_t kUpdates = 20;  // of a window, at least
constexpr double kWorthIt = 0.9;  // of the time of an update

}  // namespace

bool GraphTrial::judge(const StepTimings& window) {
  if (window.updates < kUpdates || state_ == State::decided) return uses_graphs_;
  switch (state_) {
    case State::watching:
      if (!window.is_launch_bound()) break;
      launched_seconds_ = window.update.mean_seconds;
      uses_graphs_ = true;
      state_ = State::recording;
      break;
    case State::recording:  // the window has warm-up and recording in it
      state_ = State::comparing;
      break;
    default:
      replayed_seconds_ = window.update.mean_seconds;
      uses_graphs_ = replayed_seconds_ <= kWorthIt * launched_seconds_;
      state_ = State::decided;
  }
  return uses_graphs_;
}

}  // namespace stoker::engine
