// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "observe/step_model.h"
#include "observe/time_figures.h"

namespace stoker::observe {
namespace {

using core::format;
using engine::StepPart;

constexpr double kWorthSaying = 3;     // percent: below it there is nothing to gain
constexpr double kWaits = 0.05;        // share of the time from which on waiting for data is looked at
constexpr double kOthersTake = 0.25;   // CPUs
constexpr double kWorkerIsWorth = 10;  // percent
constexpr int64_t kMostWorkers = 64, kMostPrefetch = 64;
constexpr double kCacheShare = 0.4;  // of free memory that data may take to count as fitting
constexpr double kConvolutionShare =
    0.65;  // of a network's time, that runs at bfloat16's speed: ResNet-18 here

std::string percent_text(double share) {
  return format("{:.0f}%", 100 * share);
}

/// Looks at the facts from every side; keeps the side that gains most.
class Examination {
 public:
  explicit Examination(const DiagnosisFacts& facts)
      : facts_(facts),
        times_(facts.times),
        now_(step_model(facts.times, facts.resources, facts.cpus)),
        wait_share_(times_.share(StepPart::wait)),
        computing_(times_.parts[StepPart::forward].mean_seconds +
                   times_.parts[StepPart::backward].mean_seconds +
                   times_.parts[StepPart::optimizer].mean_seconds) {}

  Diagnosis run() {
    if (times_.updates == 0 || now_.update <= 0) return best_;
    look_at_threads();
    look_at_contention();
    if (wait_share_ >= kWaits) look_at_input();
    look_at_report_and_saves();
    look_at_copies();
    look_at_batch();
    look_at_device();
    if (best_.verdict == Verdict::nothing) say_nothing_to_gain();
    return best_;
  }

 private:
  /// A side with its "what if".
  void consider(Verdict verdict, const StepModel& changed, const std::string& knob, const std::string& value,
                const std::string& advice, std::vector<std::string> evidence) {
    offer(verdict, now_.gain_percent(changed), knob, value, advice, std::move(evidence));
  }
  void offer(Verdict verdict, double gain, const std::string& knob, const std::string& value,
             const std::string& advice, std::vector<std::string> evidence) {
    if (gain < kWorthSaying || gain <= best_.gain_percent) return;
    best_ = {verdict, std::move(evidence), knob, value, advice.empty() ? knob + " " + value : advice, gain};
  }

  double per_update(double seconds_of_window) const {
    return times_.wall_seconds > 0 ? seconds_of_window * now_.update / times_.wall_seconds : 0;
  }
  std::string waits_text() const { return "waits for data " + percent_text(wait_share_); }
  /// Of a worker's time with samples.
  double stage_share(double seconds) const {
    const data::LoaderStats& l = times_.loader;
    const double all =
        l.read_seconds + l.decode_seconds + l.resize_seconds + l.augment_seconds + l.write_seconds;
    return all > 0 ? seconds / all : 0;
  }

  void look_at_threads() {
    if (!facts_.on_cpu || facts_.threads < 2 || !facts_.threads_speed) return;
    const double others = facts_.resources.other_cpus.value_or(0), speed = *facts_.threads_speed;
    const auto with_speed = [&](double speed_then, double threads) {
      StepModel changed = now_;
      changed.training -= computing_ * std::max(0.0, 1 - speed / speed_then);
      changed.network_cpu = std::min(now_.network_cpu, (changed.training) * threads);
      changed.slack = 1;
      return changed;
    };
    const std::string measured =
        format("{} threads compute at {:.2g} times the speed of one", facts_.threads, speed);
    if (others >= kOthersTake && speed < 0.9) {
      consider(Verdict::competing_threads, with_speed(1, 1), "--threads", "1", "",
               {measured, format("other processes keep {:.1f} of {} CPUs busy", others, facts_.cpus)});
    } else if (facts_.threads > facts_.cpus && facts_.cpus_speed && *facts_.cpus_speed > speed) {
      consider(Verdict::oversubscribed_threads,
               with_speed(*facts_.cpus_speed, static_cast<double>(facts_.cpus)), "--threads",
               std::to_string(facts_.cpus), "",
               {format("{} threads on {} CPUs", facts_.threads, facts_.cpus), measured,
                format("{} at {:.2g}", facts_.cpus, *facts_.cpus_speed)});
    }
  }

  void look_at_contention() {
    const double others = facts_.resources.other_cpus.value_or(0);
    const double without_cpu = facts_.resources.threads_without_cpu.value_or(0);
    if (others < kOthersTake || without_cpu < kOthersTake) return;
    StepModel changed = now_;
    changed.taken_cpus = 0;
    changed.slack = 1 + (now_.slack - 1) / 2;  // some of it is theirs
    consider(Verdict::contention, changed, "", "",
             "give this run CPUs of its own: stop the other processes, or taskset them elsewhere",
             {format("other processes keep {:.1f} of {} CPUs busy", others, facts_.cpus),
              format("{:.1f} threads of this run wait for a CPU", without_cpu), waits_text()});
  }

  void look_at_input() {
    if (look_at_prefetch() || look_at_storage()) return;
    const double more_workers = look_at_workers();
    if (more_workers < kWorkerIsWorth) look_at_stages();
  }

  /// Workers are idle and the network waits: what is missing is room for batches ahead.
  bool look_at_prefetch() {
    const double idle =
        now_.workers > 0 ? per_update(times_.loader.worker_idle_seconds) / now_.workers / now_.update : 0;
    if (idle < 0.1 || now_.slack < 1.05) return false;
    StepModel changed = now_;
    changed.slack = 1 + 0.25 * (now_.slack - 1);  // a longer queue smooths most of it
    const double longest = times_.sample.read.max_seconds + times_.sample.decode.max_seconds;
    const auto wanted = static_cast<int64_t>(std::ceil(2 * longest / std::max(1e-9, now_.limit())));
    const int64_t value = std::min(kMostPrefetch, std::max({2 * facts_.prefetch_factor, int64_t{8}, wanted}));
    if (value <= facts_.prefetch_factor) return false;
    consider(Verdict::prefetch, changed, "--prefetch-factor", std::to_string(value), "",
             {waits_text(), "workers idle " + percent_text(idle),
              format("a sample takes {} on average and up to {}",
                     short_seconds_text(times_.sample.read.mean_seconds + times_.sample.decode.mean_seconds),
                     short_seconds_text(longest)),
              format("{} batches ahead", facts_.prefetch_factor)});
    return best_.verdict == Verdict::prefetch;
  }

  bool fits(double bytes) const {
    return bytes > 0 && facts_.free_ram_bytes > 0 && bytes <= kCacheShare * facts_.free_ram_bytes;
  }

  /// True when reading is most of it.
  bool look_at_storage() {
    const double feeding = now_.worker_cpu + now_.worker_blocked;
    if (feeding <= 0 || now_.worker_blocked < 0.5 * feeding) return false;
    std::vector<std::string> evidence = {
        waits_text(),
        "workers read " + percent_text(stage_share(times_.loader.read_seconds)) + " of their time",
        format("a sample takes {} to read, 95% {}", short_seconds_text(times_.sample.read.mean_seconds),
               short_seconds_text(times_.sample.read.p95_seconds))};
    StepModel in_memory = now_;
    in_memory.worker_blocked = 0;
    const bool will_stay = facts_.holds_files || facts_.holds_pixels || fits(facts_.stored_bytes);
    if (facts_.first_epoch && facts_.epochs_left > 0 && will_stay) {
      evidence.push_back("first epoch; the data fits in memory");
      consider(Verdict::cold_cache, in_memory, "", "",
               "nothing now: later epochs read from memory; reading the files once before the run warms it",
               evidence);
      return true;
    }
    if (facts_.epochs_left > 0 && !facts_.holds_files && fits(facts_.stored_bytes)) {
      const bool pixels = fits(facts_.pixel_bytes);
      if (pixels)
        in_memory.worker_cpu *= 1 - stage_share(times_.loader.decode_seconds) /
                                        std::max(1e-9, 1 - stage_share(times_.loader.read_seconds));
      consider(Verdict::storage, in_memory, "--cache", pixels ? "ram" : "compressed", "", evidence);
      return true;
    }
    // Waiting can be done by many at once, as far as the storage takes it.
    StepModel more = now_;
    more.workers = std::min<double>(kMostWorkers, std::max(4.0, 4 * now_.workers));
    more.slack = std::max(now_.slack, 1.1);
    consider(Verdict::storage, more, "--num-workers", format("{:.0f}", more.workers), "", evidence);
    return true;
  }

  /// Returns the gain.
  double look_at_workers() {
    StepModel changed = now_;
    double gain = 0;
    const double most = std::min<double>(kMostWorkers, std::max(now_.cpus, now_.workers));
    double value = now_.workers;
    for (double workers = now_.workers + 1; workers <= most; ++workers) {
      changed.workers = workers;
      if (now_.gain_percent(changed) <= 1.03 * gain + 1)
        continue;  // a worker that gains nothing costs memory
      gain = now_.gain_percent(changed);
      value = workers;
    }
    const double cpu = (now_.worker_cpu + now_.network_cpu) / now_.update;
    changed.workers = value;
    consider(Verdict::workers, changed, "--num-workers", format("{:.0f}", value), "",
             {waits_text(), format("{:.0f} workers, busy all the time", now_.workers),
              format("{:.1f} of {} CPUs in use", cpu, facts_.cpus)});
    return gain;
  }

  void look_at_stages() {
    const data::LoaderStats& l = times_.loader;
    const double decode = stage_share(l.decode_seconds),
                 vary = stage_share(l.resize_seconds + l.augment_seconds);
    const double of_cpu = 1 / std::max(1e-9, 1 - stage_share(l.read_seconds));
    if (decode >= vary) {
      std::vector<std::string> evidence = {
          waits_text(), "workers decode " + percent_text(decode) + " of their time",
          format("a sample takes {} to decode, 95% {}", short_seconds_text(times_.sample.decode.mean_seconds),
                 short_seconds_text(times_.sample.decode.p95_seconds))};
      StepModel changed = now_;
      if (!facts_.holds_pixels && facts_.epochs_left > 0 && fits(facts_.pixel_bytes)) {
        changed.worker_cpu *= std::max(0.0, 1 - decode * of_cpu);
        changed.worker_blocked = 0;
        consider(Verdict::decode, changed, "--cache", "ram", "", evidence);
        return;
      }
      changed.worker_cpu *= 1 - 0.6 * decode * of_cpu;
      consider(Verdict::decode, changed, "", "", "store smaller images: train pack --max-side", evidence);
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
    consider(Verdict::augmentation, changed, facts_.augmentations.front(), "0",
             "without " + facts_.augmentations.front() + ", or rarer", evidence);
  }

  void look_at_report_and_saves() {
    const engine::StepParts& parts =
        times_.has_device ? times_.device : times_.parts;  // a device that idles meanwhile
    for (const auto& [part, verdict, knob, value] :
         {std::tuple(StepPart::report, Verdict::sync, "--report-every", "5s"),
          std::tuple(StepPart::save, Verdict::saving, "--save-every", "30m")}) {
      StepModel changed = now_;
      changed.training = std::max(0.0, now_.training - parts[part].mean_seconds);
      changed.network_cpu = std::max(0.0, now_.network_cpu - parts[part].mean_seconds);
      consider(
          verdict, changed, knob, value, "",
          {format("{} {} of each update's {}", part == StepPart::report ? "reporting takes" : "saving takes",
                  short_seconds_text(parts[part].mean_seconds), short_seconds_text(now_.update))});
    }
  }

  void look_at_copies() {
    const double copy = times_.parts[StepPart::copy].mean_seconds;
    if (facts_.pin_memory || copy <= 0) return;
    StepModel changed = now_;
    changed.training = std::max(0.0, now_.training - 0.9 * copy);
    changed.network_cpu = std::max(0.0, now_.network_cpu - 0.9 * copy);
    consider(Verdict::copy, changed, "--pin-memory", "", "--pin-memory",
             {format("copying takes {} of each update's {}", short_seconds_text(copy),
                     short_seconds_text(now_.update)),
              "memory is not page-locked"});
  }

  /// Fixed costs are shared by more images.
  void look_at_batch() {
    if (!facts_.fixed_seconds || computing_ <= 0) return;
    const double fixed =
        std::min(0.95 * computing_, *facts_.fixed_seconds + times_.parts[StepPart::optimizer].mean_seconds);
    if (fixed < 0.25 * computing_) return;
    const double most =
        static_cast<double>(facts_.images_per_epoch) / 8;  // an epoch of fewer updates learns less
    double factor = 1;
    while (fixed / factor > 0.1 * (computing_ - fixed) && factor < 64 &&
           2 * factor * static_cast<double>(facts_.batch_size) <= std::max(most, 1.0)) {
      factor *= 2;
    }
    if (factor < 2) return;
    StepModel changed = now_;  // per update of today's size
    changed.training = std::max(0.0, now_.training - fixed * (1 - 1 / factor));
    changed.network_cpu = std::max(0.0, now_.network_cpu - fixed * (1 - 1 / factor));
    const auto value = static_cast<int64_t>(factor) * facts_.batch_size;
    consider(Verdict::launch, changed, "--batch-size", std::to_string(value),
             format("--batch-size {} (and the learning rate with it)", value),
             {format("{} of each update's {} does not depend on the images", short_seconds_text(fixed),
                     short_seconds_text(now_.update)),
              format("{} images per batch", facts_.batch_size)});
  }

  void look_at_device() {
    const double share = computing_ / now_.update;
    const std::string busy =
        format("the {} computes {} of the time", facts_.on_cpu ? "network" : "device", percent_text(share));
    const std::vector<std::string> reasons = slowdown_reasons(facts_.resources.gpu.clock_reasons.value_or(0));
    if (const GpuReading& gpu = facts_.resources.gpu;
        !reasons.empty() && gpu.clock_mhz && gpu.highest_clock_mhz && *gpu.clock_mhz > 0) {
      StepModel changed = now_;
      changed.training *= std::min(1.0, *gpu.clock_mhz / *gpu.highest_clock_mhz);
      consider(Verdict::throttled, changed, "", "", "cool the device or raise its power cap",
               {"GPU slowed by " + core::list_text(reasons),
                format("{:.0f} of {:.0f} MHz", *gpu.clock_mhz, *gpu.highest_clock_mhz), busy});
    }
    if (share < 0.6) return;
    if (facts_.bfloat16_speed && !facts_.amp && *facts_.bfloat16_speed > 1) {
      const double left = 1 - kConvolutionShare + kConvolutionShare / *facts_.bfloat16_speed;
      StepModel changed = now_;
      changed.training -= (1 - left) * computing_;
      changed.network_cpu *= left;
      consider(Verdict::device, changed, "--amp", "", "--amp",
               {busy, format("convolutions in bfloat16 are {:.2g} times as fast", *facts_.bfloat16_speed)});
    }
    const double spare = static_cast<double>(facts_.cpus) -
                         (now_.worker_cpu + now_.network_cpu) / now_.update - now_.taken_cpus;
    if (facts_.on_cpu && facts_.threads < facts_.cpus && facts_.cpus_speed && spare >= 0.4) {
      const double speed = facts_.threads_speed.value_or(1);
      const double left = 0.3 + 0.7 * std::min(1.0, speed / *facts_.cpus_speed);
      StepModel changed = now_;
      changed.training -= (1 - left) * computing_;
      consider(
          Verdict::device, changed, "--threads", std::to_string(facts_.cpus), "",
          {busy, format("{:.1f} of {} CPUs are idle", spare, facts_.cpus),
           format("{} threads compute at {:.2g} times the speed of one", facts_.cpus, *facts_.cpus_speed)});
    }
  }

  void say_nothing_to_gain() {
    best_.evidence = {format("the {} computes {} of the time", facts_.on_cpu ? "network" : "device",
                             percent_text(std::min(1.0, computing_ / now_.update))),
                      waits_text()};
  }

  const DiagnosisFacts& facts_;
  const engine::TimeSplit& times_;
  const StepModel now_;
  const double wait_share_;
  const double computing_;  ///< seconds per update
  Diagnosis best_;
};

}  // namespace

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::nothing:
      return "nothing to gain";
    case Verdict::storage:
      return "input-bound: storage";
    case Verdict::cold_cache:
      return "input-bound: cold cache";
    case Verdict::decode:
      return "input-bound: decode";
    case Verdict::augmentation:
      return "input-bound: augmentation";
    case Verdict::workers:
      return "input-bound: too few workers";
    case Verdict::prefetch:
      return "input-bound: undersized prefetch";
    case Verdict::contention:
      return "CPU contention";
    case Verdict::competing_threads:
      return "another process competes with the threads";
    case Verdict::oversubscribed_threads:
      return "oversubscribed threads";
    case Verdict::copy:
      return "copy-bound";
    case Verdict::sync:
      return "sync-bound";
    case Verdict::saving:
      return "checkpoint-bound";
    case Verdict::launch:
      return "launch-bound: batch too small";
    case Verdict::throttled:
      return "throttled";
    case Verdict::device:
      return "device-bound";
  }
  return "";
}

Diagnosis diagnose(const DiagnosisFacts& facts) {
  return Examination(facts).run();
}

std::string diagnosis_text(const Diagnosis& diagnosis) {
  std::string evidence;
  for (const std::string& fact : diagnosis.evidence) evidence += (evidence.empty() ? "" : ", ") + fact;
  std::string text = verdict_text(diagnosis.verdict);
  if (!evidence.empty()) text += " (" + evidence + ")";
  if (diagnosis.verdict == Verdict::nothing) return text;
  return text + format(": {}; predicted {:.0f}% more images/s", diagnosis.advice, diagnosis.gain_percent);
}

core::Json diagnosis_json(const Diagnosis& diagnosis) {
  return {{"verdict", verdict_text(diagnosis.verdict)},
          {"evidence", diagnosis.evidence},
          {"knob", diagnosis.knob},
          {"value", diagnosis.value},
          {"advice", diagnosis.advice},
          {"gain_percent", diagnosis.gain_percent}};
}

}  // namespace stoker::observe
