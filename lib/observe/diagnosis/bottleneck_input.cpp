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

/// Of a worker's time with samples.
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
  propose(Verdict::prefetch, changed, "--prefetch-factor", std::to_string(value), "",
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
    propose(Verdict::cold_cache, in_memory, "", "",
            "nothing now: later epochs read from memory; reading the files once before the run warms it", evidence);
    return true;
  }
  if (facts_.epochs_left > 0 && !facts_.holds_files && fits(facts_.stored_bytes)) {
    const bool pixels = fits(facts_.pixel_bytes);
    if (pixels) in_memory = with_pixels_in_memory();
    propose(Verdict::storage, in_memory, "--cache", pixels ? "ram" : "compressed", "", evidence);
    return true;
  }
  // Waiting can be done by many at once, as far as the storage takes it.
  StepModel more = now_;
  more.workers = std::min<double>(kMaxWorkers, std::max(4.0, 4 * now_.workers));
  more.slack = std::max(now_.slack, 1.1);
  propose(Verdict::storage, more, "--num-workers", format("{:.0f}", more.workers), "", evidence);
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
  propose(Verdict::workers, changed, "--num-workers", format("{:.0f}", value), "",
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
      propose(Verdict::decode, with_pixels_in_memory(), "--cache", "ram", "", evidence);
      return;
    }
    StepModel changed = now_;
    changed.worker_cpu *= 1 - 0.6 * decode * of_cpu;
    propose(Verdict::decode, changed, "", "", "store smaller images: train pack --max-side", evidence);
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
  propose(Verdict::augmentation, changed, flag, off, (off.empty() ? flag : flag + " " + off) + ", or rarer", evidence);
}

}  // namespace stoker::observe
