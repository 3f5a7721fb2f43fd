// SPDX-License-Identifier: Apache-2.0
// The sides of an examination that have to do with data.
#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "observe/diagnosis/bottleneck_analysis.h"
#include "observe/diagnosis/time_figures.h"

namespace stoker::observe {
namespace {

using core::format;

constexpr double kWorkerIsWorth = 10;  // percent
constexpr int64_t kMaxWorkers = 64, kMaxPrefetch = 64;
constexpr double kCacheShare = 0.4;  // of free memory that data may take to count as fitting
// Resizing pixels that lie in memory against rows that were decoded just now, which are in the CPU's caches: 1.8 in CPU
// time, 2.2 by the clock, photographs of 2048 x 1536 pixels to 64 x 64.
constexpr double kResizeFromMemory = 2;

}  // namespace

double BottleneckAnalysis::per_update(double seconds_of_window) const {
  return times_.wall_seconds > 0 ? seconds_of_window * now_.update / times_.wall_seconds : 0;
}

/// Shares of a worker's time with samples.
double BottleneckAnalysis::stage_share(double seconds) const {
  const data::LoaderStats& l = times_.loader;
  const double all = l.read_seconds + l.decode_seconds + l.resize_seconds + l.augment_seconds + l.write_seconds;
  return all > 0 ? seconds / all : 0;
}

/// With decoded pixels in memory: all of them are still resized, from there.
StepModel BottleneckAnalysis::with_pixels_in_memory() const {
  const data::LoaderStats& l = times_.loader;
  const double of_cpu = 1 / std::max(1e-9, 1 - stage_share(l.read_seconds));
  const double saved = stage_share(l.decode_seconds) - (kResizeFromMemory - 1) * stage_share(l.resize_seconds);
  StepModel changed = now_;
  changed.worker_cpu *= std::max(0.0, 1 - saved * of_cpu);
  changed.worker_blocked = 0;
  return changed;
}

void BottleneckAnalysis::check_input() {
  if (check_prefetch() || check_storage()) return;
  const double more_workers = check_workers();
  if (more_workers < kWorkerIsWorth) check_stages();
}

/// Workers are idle and the network waits: the queue of batches is too short.
bool BottleneckAnalysis::check_prefetch() {
  const double idle = now_.workers > 0 ? per_update(times_.loader.worker_idle_seconds) / now_.workers / now_.update : 0;
  if (idle < 0.1 || now_.slack < 1.05) return false;
  StepModel changed = now_;
  changed.slack = 1 + 0.25 * (now_.slack - 1);  // a longer queue smooths most of it
  const double longest = times_.sample.read.max_seconds + times_.sample.decode.max_seconds;
  const auto wanted = static_cast<int64_t>(std::ceil(2 * longest / std::max(1e-9, now_.limit())));
  const int64_t value = std::min(kMaxPrefetch, std::max({2 * facts_.prefetch_factor, int64_t{8}, wanted}));
  if (value <= facts_.prefetch_factor) return false;
  propose(Verdict::prefetch, changed, wait_, "--prefetch-factor", std::to_string(value), "",
          {waits_text(), "workers idle " + percent_text(idle),
           format("a sample takes {} on average and up to {}",
                  short_seconds_text(times_.sample.read.mean_seconds + times_.sample.decode.mean_seconds),
                  short_seconds_text(longest)),
           format("{} batches ahead", facts_.prefetch_factor)});
  return best_.verdict == Verdict::prefetch;
}

bool BottleneckAnalysis::fits(double bytes) const {
  return bytes > 0 && facts_.free_ram_bytes > 0 && bytes <= kCacheShare * facts_.free_ram_bytes;
}

/// True when reading is most of it.
bool BottleneckAnalysis::check_storage() {
  const double feeding = now_.worker_cpu + now_.worker_blocked;
  if (feeding <= 0 || now_.worker_blocked < 0.5 * feeding) return false;
  std::vector<std::string> evidence = {
      waits_text(), "workers read " + percent_text(stage_share(times_.loader.read_seconds)) + " of their time",
      format("a sample takes {} to read, 95% {}", short_seconds_text(times_.sample.read.mean_seconds),
             short_seconds_text(times_.sample.read.p95_seconds))};
  StepModel in_memory = now_;
  in_memory.worker_blocked = 0;
  const bool will_stay = facts_.holds_files || facts_.holds_pixels || fits(facts_.stored_bytes);
  if (facts_.first_epoch && facts_.epochs_left > 0 && will_stay) {
    evidence.push_back("first epoch; the data fits in memory");
    propose(Verdict::cold_cache, in_memory, wait_, "", "",
            "nothing now: later epochs read from memory; reading the files once before the run warms it", evidence);
    return true;
  }
  if (facts_.epochs_left > 0 && !facts_.holds_files && fits(facts_.stored_bytes)) {
    const bool pixels = fits(facts_.pixel_bytes);
    if (pixels) in_memory = with_pixels_in_memory();
    propose(Verdict::storage, in_memory, wait_, "--cache", pixels ? "ram" : "compressed", "", evidence);
    return true;
  }
  // Waiting can be done by many at once, as far as the storage takes it.
  StepModel more = now_;
  more.workers = std::min<double>(kMaxWorkers, std::max(4.0, 4 * now_.workers));
  more.slack = std::max(now_.slack, 1.1);
  propose(Verdict::storage, more, wait_, "--num-workers", format("{:.0f}", more.workers), "", evidence);
  return true;
}

/// Returns the gain.
double BottleneckAnalysis::check_workers() {
  StepModel changed = now_;
  double gain = 0;
  const double most = std::min<double>(kMaxWorkers, std::max(now_.cpus, now_.workers));
  double value = now_.workers;
  const auto most_added = static_cast<int>(most - now_.workers);
  for (int added = 1; added <= most_added; ++added) {
    changed.workers = now_.workers + added;
    if (now_.gain_percent(changed) <= 1.03 * gain + 1) continue;  // a worker that gains nothing costs memory
    gain = now_.gain_percent(changed);
    value = changed.workers;
  }
  const double cpu = (now_.worker_cpu + now_.network_cpu) / now_.update;
  changed.workers = value;
  propose(Verdict::workers, changed, wait_, "--num-workers", format("{:.0f}", value), "",
          {waits_text(), format("{:.0f} workers, busy all the time", now_.workers),
           format("{:.1f} of {} CPUs in use", cpu, facts_.cpus)});
  return gain;
}

void BottleneckAnalysis::check_stages() {
  const data::LoaderStats& l = times_.loader;
  const double decode = stage_share(l.decode_seconds), vary = stage_share(l.resize_seconds + l.augment_seconds);
  const double of_cpu = 1 / std::max(1e-9, 1 - stage_share(l.read_seconds));
  if (decode >= vary) {
    std::vector<std::string> evidence = {
        waits_text(), "workers decode " + percent_text(decode) + " of their time",
        format("a sample takes {} to decode, 95% {}", short_seconds_text(times_.sample.decode.mean_seconds),
               short_seconds_text(times_.sample.decode.p95_seconds))};
    if (!facts_.holds_pixels && facts_.epochs_left > 0 && fits(facts_.pixel_bytes)) {
      propose(Verdict::decode, with_pixels_in_memory(), wait_, "--cache", "ram", "", evidence);
      return;
    }
    StepModel changed = now_;
    changed.worker_cpu *= 1 - 0.6 * decode * of_cpu;
    propose(Verdict::decode, changed, wait_, "", "", "store smaller images: train pack --max-side", evidence);
    return;
  }
  StepModel changed = now_;
  const double augment = stage_share(l.augment_seconds);
  std::vector<std::string> evidence = {
      waits_text(), "workers resize and augment " + percent_text(vary) + " of their time",
      format("a sample takes {} to augment, 95% {}", short_seconds_text(times_.sample.augment.mean_seconds),
             short_seconds_text(times_.sample.augment.p95_seconds))};
  if (facts_.augmentations.empty() || augment <= 0) return;
  // The costliest of several is taken for more than an even share of their time.
  const auto count = static_cast<double>(facts_.augmentations.size());
  const double share = count <= 1 ? 1 : 1.3 / count;
  changed.worker_cpu *= 1 - std::min(1.0, share) * augment * of_cpu;
  const auto& [flag, off] = facts_.augmentations.front();
  propose(Verdict::augmentation, changed, wait_, flag, off, (off.empty() ? flag : flag + " " + off) + ", or rarer",
          evidence);
}

// The sides of an examination that have to do with the other ranks of a run.

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
    propose(Verdict::exchange, changed, exchange, "--accumulation-steps", std::to_string(value),
            format("--accumulation-steps {} (and the learning rate with it)", value), evidence);
  }
  if (ranks.ranks % 2 != 0) return;
  const int64_t fewer = ranks.ranks / 2;
  StepModel changed = now_;
  changed.training += work - exchange * (1 - sent_share(fewer) / sent_share(ranks.ranks));
  changed.network_cpu *= 2;
  changed.worker_cpu *= 2;
  changed.worker_blocked *= 2;
  propose(Verdict::exchange, changed, exchange, "--devices", std::to_string(fewer), "", evidence);
}

/// Every rank waits for the one that is last.
void BottleneckAnalysis::check_slowest(const engine::RankSummary& ranks) {
  if (ranks.slowest_excess() < kRankIsSlow) return;
  const double excess = ranks.slowest_seconds - ranks.others_seconds;
  double longest_wait = 0;  // for whoever is last
  for (const engine::RankTimes& rank : facts_.ranks) {
    longest_wait = std::max(longest_wait, rank.exchange - ranks.exchange_seconds);
  }
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
  propose(Verdict::unequal_ranks, changed, std::min(excess, longest_wait), "", "",
          format("look at {}: {}", who,
                 waits_for_data ? "its storage, and CPUs for its workers"
                                : "another process, fewer or slower CPUs; or run without it"),
          evidence);
}

}  // namespace stoker::observe
