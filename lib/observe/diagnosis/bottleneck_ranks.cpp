// SPDX-License-Identifier: Apache-2.0
// The sides of an examination that have to do with the other ranks of a run.
#include <algorithm>

#include "core/format.h"
#include "observe/diagnosis/bottleneck_analysis.h"
#include "observe/diagnosis/time_figures.h"

namespace stoker::observe {
namespace {

using core::format;

constexpr double kExchangeIsLong = 0.1;    // of an update
constexpr double kExchangeIsShort = 0.05;  // of the work: more images per exchange gain little from here on
constexpr double kRankIsSlow = 0.05;       // its work is so much longer than that of the others
constexpr double kMaxMore = 16;            // images in an update, times those of today

/// Bytes that a rank sends, over the bytes that are summed.
double sent_share(int64_t ranks) { return 2 * static_cast<double>(ranks - 1) / static_cast<double>(ranks); }

/// `now` without `seconds` of waiting for other ranks, and of the CPU time that goes with it: what others leave
/// of the CPUs has been enough for the work so far, and is enough for the same work with shorter waits.
StepModel without_waiting(const StepModel& now, double seconds) {
  StepModel changed = now;
  changed.training = std::max(0.0, now.training - seconds);
  if (now.training > 0) changed.network_cpu *= changed.training / now.training;
  return changed;
}

}  // namespace

void BottleneckAnalysis::check_ranks() {
  const std::optional<engine::RankSummary> ranks = engine::rank_summary(facts_.ranks);
  if (!ranks) return;
  check_exchange(*ranks);
  check_slowest(*ranks);
}

/// More work for each exchange, or fewer who have to exchange.
void BottleneckAnalysis::check_exchange(const engine::RankSummary& ranks) {
  if (ranks.exchange_share < kExchangeIsLong) return;
  const double exchange = ranks.exchange_share * now_.update, work = now_.update - exchange;
  const std::vector<std::string> evidence = {
      format("{} ranks wait for their sums {} of the time", ranks.ranks, percent_text(ranks.exchange_share)),
      format("{} of each update's {}", short_seconds_text(exchange), short_seconds_text(now_.update))};
  const auto images = static_cast<double>(facts_.batch_size * facts_.accumulation_steps * facts_.replicas);
  const double most = static_cast<double>(facts_.images_per_epoch) / 8;  // an epoch of fewer updates learns less
  double factor = 1;
  while (exchange / factor > kExchangeIsShort * work && factor < kMaxMore && 2 * factor * images <= most) factor *= 2;
  if (factor > 1) {
    const StepModel changed = without_waiting(now_, exchange * (1 - 1 / factor));  // per update of today's size
    const auto value = static_cast<int64_t>(factor) * facts_.accumulation_steps;
    propose(Verdict::exchange, changed, "--accumulation-steps", std::to_string(value),
            format("--accumulation-steps {} (and the learning rate with it)", value), evidence);
  }
  if (ranks.ranks % 2 != 0) return;
  const int64_t fewer = ranks.ranks / 2;
  StepModel changed = now_;
  changed.training += work - exchange * (1 - sent_share(fewer) / sent_share(ranks.ranks));
  changed.network_cpu *= 2;
  changed.worker_cpu *= 2;
  changed.worker_blocked *= 2;
  propose(Verdict::exchange, changed, "--devices", std::to_string(fewer), "", evidence);
}

/// Every rank waits for the one that is last.
void BottleneckAnalysis::check_slowest(const engine::RankSummary& ranks) {
  if (ranks.slowest_excess() < kRankIsSlow) return;
  const double excess = ranks.slowest_seconds - ranks.others_seconds;
  const StepModel changed = without_waiting(now_, excess);
  const std::string who = format("rank {} on {}", ranks.slowest, ranks.slowest_host);
  std::vector<std::string> evidence = {format(
      "{} works {} on each update, the other{} {}{}", who, short_seconds_text(ranks.slowest_seconds),
      ranks.ranks == 2 ? "" : "s", short_seconds_text(ranks.others_seconds), ranks.ranks == 2 ? "" : " on average")};
  const engine::RankTimes& slowest = facts_.ranks[static_cast<size_t>(ranks.slowest)];
  const bool waits_for_data = slowest.wait > 0.5 * excess;
  if (waits_for_data) {
    evidence.push_back(format("{} of that it waits for data", short_seconds_text(slowest.wait)));
  }
  propose(Verdict::unequal_ranks, changed, "", "",
          format("look at {}: {}", who,
                 waits_for_data ? "its storage, and CPUs for its workers"
                                : "another process, fewer or slower CPUs; or go on without it"),
          evidence);
}

}  // namespace stoker::observe
