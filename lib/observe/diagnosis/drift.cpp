// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/drift.h"

#include <algorithm>

#include "core/format.h"

namespace stoker::observe {
namespace {

using core::format;

constexpr double kMoreWaiting = 0.1;  // of the time
constexpr double kMoreOthers = 0.3;   // CPUs

std::string rate_text(double rate) { return core::count_text(static_cast<int64_t>(rate)); }

}  // namespace

void DriftWatch::EpochWindow::append(const EpochWindow& next) {
  const double all = seconds + next.seconds, share = all > 0 ? next.seconds / all : 1;
  const auto mix = [&](double& mean, double value) { mean += share * (value - mean); };
  mix(images_per_second, next.images_per_second);
  mix(data_wait_share, next.data_wait_share);
  mix(other_cpus, next.other_cpus);
  mix(waiting_threads, next.waiting_threads);
  mix(exchange_share, next.exchange_share);
  is_slowed = next.is_slowed;
  if (first == 0) first = next.first;
  last = next.last;
  seconds = all;
}

std::string DriftWatch::EpochWindow::name() const {
  return first == last ? format("epoch {}", first) : format("epochs {} to {}", first, last);
}

DriftWatch::EpochWindow DriftWatch::window_of(const engine::EpochEvent& event) {
  EpochWindow epoch;
  epoch.first = epoch.last = event.epoch + 1;
  epoch.seconds = event.train_seconds;
  epoch.images_per_second = event.images_per_second;
  epoch.data_wait_share = event.data_wait_share;
  if (const auto ranks = engine::rank_summary(event.ranks)) epoch.exchange_share = ranks->exchange_share;
  if (event.found.resources) {
    epoch.other_cpus = event.found.resources->other_cpus.value_or(-1);
    epoch.waiting_threads = event.found.resources->threads_without_cpu.value_or(0);
    const engine::GpuReading& gpu = event.found.resources->gpu;
    epoch.is_slowed = gpu.clock_mhz && gpu.highest_clock_mhz && *gpu.clock_mhz < 0.9 * *gpu.highest_clock_mhz;
  }
  return epoch;
}

std::string DriftWatch::cause(const EpochWindow& best, const EpochWindow& now) {
  const bool knows_others = now.other_cpus >= 0 && best.other_cpus >= 0;
  if (knows_others && now.other_cpus > best.other_cpus + kMoreOthers) {
    return format("other processes keep {:.1f} of its CPUs busy, then {:.1f}", now.other_cpus, best.other_cpus);
  }
  // CPUs that are busy already do not get busier with every process that starts, but waiting gets longer.
  if (now.waiting_threads > best.waiting_threads + kMoreOthers) {
    return format(
        "{:.1f} of its threads wait for a CPU, then {:.1f}: other processes, or a limit of the container, take "
        "the CPUs",
        now.waiting_threads, best.waiting_threads);
  }
  if (now.data_wait_share > best.data_wait_share + kMoreWaiting) {
    const bool others_compute = knows_others && now.other_cpus > kMoreOthers;  // a worker without a CPU is late, too
    return format("it waits for data {:.0f}% of the time, then {:.0f}%: storage or page cache got slower{}",
                  100 * now.data_wait_share, 100 * best.data_wait_share,
                  others_compute
                      ? format(", or workers get less of the CPUs, of which other processes keep {:.1f} busy, "
                               "then {:.1f}",
                               now.other_cpus, best.other_cpus)
                      : "");
  }
  if (now.is_slowed && !best.is_slowed) return "the GPU's clocks are lower than then: heat or its power limit";
  if (now.exchange_share > best.exchange_share + kMoreWaiting) {
    return format("the exchange between ranks takes {:.0f}% of the time, then {:.0f}%", 100 * now.exchange_share,
                  100 * best.exchange_share);
  }
  if (knows_others && now.other_cpus > kMoreOthers) {
    return format(
        "other processes keep {:.1f} of its CPUs busy, then {:.1f}: where CPUs are full already, more processes "
        "leave less to each",
        now.other_cpus, best.other_cpus);
  }
  return format(
      "the network itself computes slower, while {}: clocks of a hot machine, a virtual machine that got less, "
      "or memory that is swapped",
      knows_others ? format("it waits for data as it did, and other processes keep {:.1f} of its CPUs busy, then "
                            "{:.1f}",
                            now.other_cpus, best.other_cpus)
                   : "it waits for data as it did (what other processes do is not known here)");
}

std::string DriftWatch::judge(const engine::EpochEvent& event) {
  if (is_first_) {
    is_first_ = false;
    return "";
  }
  open_.append(window_of(event));
  if (open_.seconds < kLeastSeconds) return "";
  const EpochWindow now = open_;
  open_ = {};
  return compare(now);
}

std::string DriftWatch::compare(const EpochWindow& now) {
  const EpochWindow before = before_;
  before_ = now;
  if (now.images_per_second >= best_.images_per_second) {
    best_ = now;
    reported_ = 0;
    return "";
  }
  const double slower_of_best = kSlower * best_.images_per_second;
  const double slow = std::max(now.images_per_second, before.images_per_second);
  if (slow >= slower_of_best || before.last == best_.last) {
    if (now.images_per_second >= slower_of_best) reported_ = 0;
    return "";
  }
  if (reported_ > 0 && slow >= kSlower * reported_) return "";
  reported_ = slow;
  const int64_t epochs = now.last - before.first + 1;
  return format("{} images/s in the last {} epochs, {:.0f}% below the {} of {}: {}", rate_text(slow),
                epochs == 2 ? "two" : core::count_text(epochs), 100 * (1 - slow / best_.images_per_second),
                rate_text(best_.images_per_second), best_.name(), cause(best_, now));
}

}  // namespace stoker::observe
