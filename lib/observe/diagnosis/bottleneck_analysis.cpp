// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/bottleneck_analysis.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/format.h"
#include "observe/diagnosis/time_figures.h"

namespace stoker::observe {

namespace {

using engine::StepPart;

constexpr double kLeastCpus = 0.25;  // a fair scheduler leaves us some

}  // namespace

double StepModel::limit() const {
  const double feeding = worker_cpu + worker_blocked;
  const double cpu = (worker_cpu + network_cpu) / std::max(least_cpus, cpus - taken_cpus);
  if (workers < 1) return std::max(training + feeding, cpu);
  return std::max({training, feeding / workers, cpu});
}

double StepModel::gain_percent(const StepModel& changed) const {
  const double predicted = changed.limit() * changed.slack;
  return predicted > 0 && update > 0 ? std::max(0.0, 100 * (update / predicted - 1)) : 0;
}

StepModel step_model(const engine::StepTimings& times, const ResourceReading& resources, int64_t cpus) {
  StepModel model;
  model.update = times.update.mean_seconds;
  if (times.updates == 0 || model.update <= 0 || times.wall_seconds <= 0) return model;
  // The loader's and the kernel's figures are of the whole window, in which the last update need not be over.
  const double per_update = model.update / times.wall_seconds;
  const data::LoaderStats& loader = times.loader;
  const double read = loader.read_seconds * per_update;
  const double busy =
      read +
      (loader.decode_seconds + loader.resize_seconds + loader.augment_seconds + loader.write_seconds) * per_update;
  model.workers = loader.num_workers;
  model.cpus = static_cast<double>(std::max<int64_t>(1, cpus));
  model.taken_cpus = resources.other_cpus.value_or(0);
  const double training_cpu = times.training_cpu_seconds * per_update;
  // Only reading waits for something besides a CPU.
  model.worker_cpu = model.workers > 0 ? std::min(busy, loader.worker_cpu_seconds * per_update) : busy - read;
  model.worker_blocked = std::clamp(busy - model.worker_cpu, 0.0, read);
  model.network_cpu = std::max(0.0, (times.process_cpu_seconds - loader.worker_cpu_seconds) * per_update -
                                        (model.workers > 0 ? 0 : busy - read));
  model.least_cpus = std::max(kLeastCpus, (model.worker_cpu + model.network_cpu) / model.update);

  model.training = std::max(0.0, model.update - times.judged()[StepPart::wait].mean_seconds);
  const double computing = times.computing_seconds();
  // One thread that computes and did not get a CPU: wall time beyond its CPU time. Several threads spin,
  // which looks like work; a device computes without a CPU.
  const bool one_thread = !times.has_device && model.network_cpu < 1.2 * training_cpu;
  if (one_thread && model.workers > 0 && training_cpu > 0) model.training -= std::max(0.0, computing - training_cpu);
  const double explained = model.limit();
  model.slack = explained > 0 ? std::max(1.0, model.update / explained) : 1;
  return model;
}

namespace {

using core::format;
using engine::StepPart;

constexpr double kWorthSaying = 3;       // percent: below it there is nothing to gain
constexpr double kErrors = 2;            // standard errors: what made n updates longer is sqrt(n) of them
constexpr double kWaits = 0.05;          // share of the time from which on waiting for data is looked at
constexpr double kOthersTake = 0.25;     // CPUs
constexpr double kMostlyComputes = 0.6;  // share of the time
// The share of a network's time that runs at bfloat16's speed: ResNet-18 here.
constexpr double kConvolutionShare = 0.65;
// The speed of bfloat16 over TF32 on tensor cores, by the data sheets of every NVIDIA architecture since 8.0.
constexpr double kTensorCoreSpeed = 2;
// The speed of other libraries over the reference BLAS, at least, in float32 on one thread.
constexpr double kReferenceBlas = 10;

}  // namespace

BottleneckAnalysis::BottleneckAnalysis(const DiagnosisFacts& facts)
    : facts_(facts),
      times_(facts.times),
      now_(step_model(facts.times, facts.resources, facts.cpus)),
      wait_share_(times_.share(StepPart::wait)),
      wait_(times_.judged()[StepPart::wait].mean_seconds),
      computing_(times_.computing_seconds()),
      scatter_(kErrors * times_.update.standard_error()) {}

Diagnosis BottleneckAnalysis::run() {
  if (times_.updates == 0 || now_.update <= 0) return best_;
  check_threads();
  check_contention();
  check_ranks();
  // A device that waits for the host to launch is not a sign of missing data.
  if (times_.is_launch_bound()) {
    check_launching();
  } else if (wait_share_ >= kWaits) {
    check_input();
  }
  check_report_and_saves();
  check_copies();
  check_batch();
  check_device();
  if (best_.verdict == Verdict::nothing) conclude_nothing_to_gain();
  return best_;
}

void BottleneckAnalysis::propose(Verdict verdict, const StepModel& changed, double cause, const std::string& option,
                                 const std::string& value, const std::string& advice,
                                 std::vector<std::string> evidence) {
  const double gain = std::min(now_.gain_percent(changed), percent_without(cause));
  if (gain < kWorthSaying || gain <= best_.gain_percent) return;
  if (gain <= percent_without(scatter_)) {
    is_hidden_ = true;
    return;
  }
  best_ = {verdict, std::move(evidence), option, value, advice.empty() ? option + " " + value : advice, gain};
}

double BottleneckAnalysis::percent_without(double seconds) const {
  const double left = now_.update - seconds;
  return left > 0 ? 100 * std::max(0.0, seconds) / left : std::numeric_limits<double>::infinity();
}

std::string BottleneckAnalysis::percent_text(double share) { return format("{:.0f}%", 100 * share); }

std::string BottleneckAnalysis::waits_text() const { return "waits for data " + percent_text(wait_share_); }

void BottleneckAnalysis::check_threads() {
  if (!facts_.on_cpu || facts_.threads < 2) return;
  const double pass = facts_.pass_seconds(), others = facts_.resources.other_cpus.value_or(0);
  const std::string measured = format("{} threads compute a batch in {}", facts_.threads, short_seconds_text(pass));
  if (facts_.threads > facts_.cpus && facts_.cpus_seconds && *facts_.cpus_seconds < pass) {
    const StepModel changed = with_pass_of(*facts_.cpus_seconds, facts_.cpus);
    propose(Verdict::oversubscribed_threads, changed, saved_by(changed), "--threads", std::to_string(facts_.cpus), "",
            {format("{} threads on {} CPUs", facts_.threads, facts_.cpus), measured,
             format("{} in {}", facts_.cpus, short_seconds_text(*facts_.cpus_seconds))});
  } else if (others >= kOthersTake && facts_.one_thread_seconds && *facts_.one_thread_seconds < 0.9 * pass) {
    const StepModel changed = with_pass_of(*facts_.one_thread_seconds, 1);
    propose(Verdict::competing_threads, changed, saved_by(changed), "--threads", "1", "",
            {measured, format("one in {}", short_seconds_text(*facts_.one_thread_seconds)),
             format("other processes keep {:.1f} of {} CPUs busy", others, facts_.cpus)});
  }
}

/// With another number of threads, on which forward and backward of a batch take `seconds`.
StepModel BottleneckAnalysis::with_pass_of(double seconds, int64_t threads) const {
  StepModel changed = now_;
  changed.training -= std::max(0.0, 1 - seconds / facts_.pass_seconds()) * computing_;
  changed.network_cpu = std::min(now_.network_cpu, changed.training * static_cast<double>(threads));
  changed.slack = 1;
  return changed;
}

void BottleneckAnalysis::check_contention() {
  const double others = facts_.resources.other_cpus.value_or(0);
  const double without_cpu = facts_.resources.threads_without_cpu.value_or(0);
  if (others < kOthersTake || without_cpu < kOthersTake) return;
  StepModel changed = now_;
  changed.taken_cpus = 0;
  changed.slack = 1 + (now_.slack - 1) / 2;  // some of it is theirs
  propose(Verdict::contention, changed, std::min(1.0, without_cpu) * now_.update, "", "",
          "give this run CPUs of its own: stop the other processes, or taskset them elsewhere",
          {format("other processes keep {:.1f} of {} CPUs busy", others, facts_.cpus),
           format("{:.1f} threads of this run wait for a CPU", without_cpu), waits_text()});
}

void BottleneckAnalysis::check_report_and_saves() {
  const engine::StepParts& parts = times_.judged();  // of a device: that it idles meanwhile
  const double reports = facts_.report_seconds, saves = facts_.save_seconds;
  const char* const report_value = reports < 5 ? "5s" : reports < 60 ? "1m" : "";  // longer than what is set
  const char* const save_value = saves < 1800 ? "30m" : saves < 7200 ? "2h" : "";
  for (const auto& [part, verdict, option, value] :
       {std::tuple(StepPart::report, Verdict::sync, "--report-every", report_value),
        std::tuple(StepPart::save, Verdict::saving, "--save-every", save_value)}) {
    if (*value == '\0') continue;
    StepModel changed = now_;
    changed.training = std::max(0.0, now_.training - parts[part].mean_seconds);
    changed.network_cpu = std::max(0.0, now_.network_cpu - parts[part].mean_seconds);
    propose(verdict, changed, parts[part].mean_seconds, option, value, "",
            {format("{} {} of each update's {}", part == StepPart::report ? "reporting takes" : "saving takes",
                    short_seconds_text(parts[part].mean_seconds), short_seconds_text(now_.update))});
  }
}

void BottleneckAnalysis::check_copies() {
  const double copy = times_.parts[StepPart::copy].mean_seconds;
  if (facts_.pin_memory || copy <= 0) return;
  StepModel changed = now_;
  changed.training = std::max(0.0, now_.training - 0.9 * copy);
  changed.network_cpu = std::max(0.0, now_.network_cpu - 0.9 * copy);
  propose(Verdict::copy, changed, copy, "--pin-memory", "", "--pin-memory",
          {format("copying takes {} of each update's {}", short_seconds_text(copy), short_seconds_text(now_.update)),
           "memory is not page-locked"});
}

/// Fixed costs are shared by more images.
void BottleneckAnalysis::check_batch() {
  if (!facts_.overhead_seconds || computing_ <= 0) return;
  const double fixed =
      std::min(0.95 * computing_, *facts_.overhead_seconds + times_.judged()[StepPart::optimizer].mean_seconds);
  if (fixed < 0.25 * computing_) return;
  const double most = static_cast<double>(facts_.images_per_epoch) / 8;  // an epoch of fewer updates learns less
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
  propose(Verdict::launch, changed, fixed, "--batch-size", std::to_string(value),
          format("--batch-size {} (and the learning rate with it)", value),
          {format("{} of each update's {} does not depend on the images", short_seconds_text(fixed),
                  short_seconds_text(now_.update)),
           format("{} images per batch", facts_.batch_size)});
}

/// The host takes as long for an update of twice the images, the device up to twice as long.
void BottleneckAnalysis::check_launching() {
  const double busy = std::clamp(facts_.resources.gpu.busy_percent.value_or(50) / 100, 0.05, 1.0);
  const double most = static_cast<double>(facts_.images_per_epoch) / 8;  // an epoch of fewer updates learns less
  double factor = 1;
  while (factor * busy < 1 && factor < 64 &&
         2 * factor * static_cast<double>(facts_.batch_size) <= std::max(most, 1.0)) {
    factor *= 2;
  }
  if (factor < 2) return;
  StepModel changed = now_;  // per update of today's size
  changed.training = now_.training * std::max(1 / factor, busy);
  changed.network_cpu = now_.network_cpu / factor;
  const auto value = static_cast<int64_t>(factor) * facts_.batch_size;
  propose(Verdict::launch, changed, saved_by(changed), "--batch-size", std::to_string(value),
          format("--batch-size {} (and the learning rate with it)", value),
          {format("the device is {} behind the host, which takes {} to launch an update",
                  short_seconds_text(times_.lag_seconds), short_seconds_text(now_.update)),
           format("{} images per batch", facts_.batch_size)});
}

/// `busy`: how much of the time the network computes, in words.
void BottleneckAnalysis::check_precision(const std::string& busy) {
  const auto propose_precision = [&](double left, const char* option, const std::string& why) {
    StepModel changed = now_;
    changed.training -= (1 - left) * computing_;
    changed.network_cpu *= left;
    propose(Verdict::device, changed, saved_by(changed), option, "", option, {busy, why});
  };
  if (const std::optional<double>& speed = facts_.network_bfloat16_speed) {
    const std::string why = format("the network trains {:.2g} times as fast in bfloat16 as in float32", *speed);
    if (facts_.amp && *speed < 1) propose_precision(*speed, "--no-amp", why);
    if (!facts_.amp && *speed > 1) propose_precision(1 / *speed, "--amp", why);
  } else if (facts_.bfloat16_speed && !facts_.amp && *facts_.bfloat16_speed > 1) {
    propose_precision(1 - kConvolutionShare + kConvolutionShare / *facts_.bfloat16_speed, "--amp",
                      format("convolutions in bfloat16 are {:.2g} times as fast", *facts_.bfloat16_speed));
  } else if (!facts_.on_cpu && facts_.native_bfloat16 && !facts_.amp) {
    propose_precision(1 - kConvolutionShare + kConvolutionShare / kTensorCoreSpeed, "--amp",
                      "it computes bfloat16 natively");
  }
}

void BottleneckAnalysis::check_layout(const std::string& busy) {
  const std::optional<double>& speed = facts_.other_layout_speed;
  if (!speed || *speed <= 1) return;
  StepModel changed = now_;
  changed.training -= (1 - 1 / *speed) * computing_;
  changed.network_cpu /= *speed;
  const std::string option = facts_.channels_last ? "--no-channels-last" : "--channels-last";
  propose(Verdict::device, changed, saved_by(changed), option, "", option,
          {busy, format("the network trains {:.2g} times as fast {}", *speed,
                        facts_.channels_last ? "channels-first" : "channels-last")});
}

/// Linear layers and attention in float32 go to the BLAS, convolutions and bfloat16 to oneDNN.
void BottleneckAnalysis::check_blas(const std::string& busy) {
  const double share = facts_.compute.product_share;
  if (!facts_.on_cpu || !facts_.reference_blas || facts_.amp || share <= 0) return;
  const double left = 1 / (1 - share + kReferenceBlas * share);
  StepModel changed = now_;
  changed.training -= (1 - left) * computing_;
  changed.network_cpu *= left;
  propose(Verdict::device, changed, saved_by(changed), "", "", "apt install libopenblas0-openmp",
          {busy, "the reference BLAS multiplies matrices, which are " + percent_text(share) + " of the operations"});
}

void BottleneckAnalysis::check_device() {
  const double share = computing_ / now_.update;
  const std::string busy =
      format("the {} computes {} of the time", facts_.on_cpu ? "network" : "device", percent_text(share));
  const std::vector<std::string> reasons = slowdown_reasons(facts_.resources.gpu.clock_reasons.value_or(0));
  if (const GpuReading& gpu = facts_.resources.gpu;
      !reasons.empty() && gpu.clock_mhz && gpu.highest_clock_mhz && *gpu.clock_mhz > 0) {
    StepModel changed = now_;
    changed.training *= std::min(1.0, *gpu.clock_mhz / *gpu.highest_clock_mhz);
    propose(Verdict::throttled, changed, saved_by(changed), "", "", "cool the device or raise its power cap",
            {"GPU slowed by " + core::list_text(reasons),
             format("{:.0f} of {:.0f} MHz", *gpu.clock_mhz, *gpu.highest_clock_mhz), busy});
  }
  if (share < kMostlyComputes) return;
  check_precision(busy);
  check_layout(busy);
  check_blas(busy);
  const double spare =
      static_cast<double>(facts_.cpus) - (now_.worker_cpu + now_.network_cpu) / now_.update - now_.taken_cpus;
  // Several replicas compute with one thread each.
  if (facts_.on_cpu && facts_.replicas == 1 && facts_.threads < facts_.cpus && facts_.cpus_seconds && spare >= 0.4) {
    StepModel changed = now_;
    changed.training -= std::max(0.0, 1 - *facts_.cpus_seconds / facts_.pass_seconds()) * computing_;
    propose(Verdict::device, changed, saved_by(changed), "--threads", std::to_string(facts_.cpus), "",
            {busy, format("{:.1f} of {} CPUs are idle", spare, facts_.cpus),
             format("{} threads compute a batch in {}, {} in {}", facts_.cpus, short_seconds_text(*facts_.cpus_seconds),
                    facts_.threads, short_seconds_text(facts_.pass_seconds()))});
  }
}

/// Why a network that computes all the time is far from the peak; "" where it is not, or that is not known. The share
/// itself (MFU) stands in the line of the epoch.
std::string BottleneckAnalysis::low_utilization_text() const {
  constexpr double kLow = 0.4, kMuch = 0.15, kSome = 0.03;  // shares; depthwise convolutions are few operations
  const auto images = static_cast<double>(facts_.batch_size * facts_.accumulation_steps * facts_.replicas);
  const std::optional<double> share = engine::utilization(facts_.compute, images / now_.update);
  if (!share || *share <= 0 || *share >= kLow || computing_ < kMostlyComputes * now_.update) return "";
  const std::string text = "far from the peak";
  const double fixed = facts_.overhead_seconds.value_or(0) / std::max(computing_, 1e-9);
  if (fixed > kMuch) return text + ": starting operations takes " + percent_text(std::min(1.0, fixed));
  if (facts_.compute.grouped_share > kSome) return text + ": depthwise convolutions move more memory than they compute";
  return text + ": normalizations, activations and moving memory take the rest";
}

/// Adds trials of other numbers of threads to the evidence; the advice names no option.
void BottleneckAnalysis::conclude_cpu_limit() {
  if (!facts_.on_cpu || computing_ < kMostlyComputes * now_.update) return;
  const bool more_would_help = facts_.cpus_seconds && *facts_.cpus_seconds < facts_.pass_seconds();
  if (facts_.threads < facts_.cpus && facts_.cpus_seconds && !more_would_help) {
    best_.evidence.push_back(format("{} threads compute a batch in {}, {} in {}", facts_.cpus,
                                    short_seconds_text(*facts_.cpus_seconds), facts_.threads,
                                    short_seconds_text(facts_.pass_seconds())));
  }
  best_.evidence.emplace_back("the CPU is the limit: a smaller network, smaller images or more CPUs would change it");
}

void BottleneckAnalysis::conclude_nothing_to_gain() {
  best_.evidence = {format("the {} computes {} of the time", facts_.on_cpu ? "network" : "device",
                           percent_text(std::min(1.0, computing_ / now_.update))),
                    waits_text()};
  conclude_cpu_limit();
  if (is_hidden_) {
    best_.evidence.push_back(format("gains below {:.0f}% do not show in {} updates that scatter like these",
                                    percent_without(scatter_), times_.updates));
  }
  if (const std::string text = low_utilization_text(); !text.empty()) best_.evidence.push_back(text);
  if (const std::optional<engine::RankSummary> ranks = engine::rank_summary(facts_.ranks)) {
    best_.evidence.push_back("exchanges " + percent_text(ranks->exchange_share));
  }
}

}  // namespace stoker::observe
