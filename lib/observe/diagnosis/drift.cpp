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

DriftWatch::Epoch DriftWatch::epoch_of(const engine::EpochEvent& event) {
  Epoch epoch;
  epoch.number = event.epoch + 1;
  epoch.images_per_second = event.images_per_second;
  epoch.data_wait_share = event.data_wait_share;
  if (const auto ranks = engine::rank_summary(event.ranks)) epoch.exchange_share = ranks->exchange_share;
  if (event.found.resources) {
    epoch.other_cpus = event.found.resources->other_cpus.value_or(0);
    const engine::GpuReading& gpu = event.found.resources->gpu;
    epoch.is_slowed = gpu.clock_mhz && gpu.highest_clock_mhz && *gpu.clock_mhz < 0.9 * *gpu.highest_clock_mhz;
  }
  return epoch;
}

std::string DriftWatch::cause(const Epoch& best, const Epoch& now) {
  if (now.data_wait_share > best.data_wait_share + kMoreWaiting) {
    return format("it waits for data {:.0f}% of the time, then {:.0f}%: storage or page cache gives less than it did",
                  100 * now.data_wait_share, 100 * best.data_wait_share);
  }
  if (now.other_cpus > best.other_cpus + kMoreOthers) {
    return format("other processes keep {:.1f} of its CPUs busy, then {:.1f}", now.other_cpus, best.other_cpus);
  }
  if (now.is_slowed && !best.is_slowed) return "the GPU's clocks are lower than then: heat or its power limit";
  if (now.exchange_share > best.exchange_share + kMoreWaiting) {
    return format("the exchange between ranks takes {:.0f}% of the time, then {:.0f}%", 100 * now.exchange_share,
                  100 * best.exchange_share);
  }
  return "the network itself computes slower, while data and other processes are as they were: clocks of a hot "
         "machine, "
         "a virtual machine that got less, or memory that is swapped";
}

std::string DriftWatch::judge(const engine::EpochEvent& event) {
  if (is_first_) {
    is_first_ = false;
    return "";
  }
  const Epoch now = epoch_of(event), before = before_;
  before_ = now;
  if (now.images_per_second >= best_.images_per_second) {
    best_ = now;
    said_ = 0;
    return "";
  }
  const double slower_of_best = kSlower * best_.images_per_second;
  const double slow = std::max(now.images_per_second, before.images_per_second);
  if (slow >= slower_of_best || before.number == best_.number) {
    if (now.images_per_second >= slower_of_best) said_ = 0;
    return "";
  }
  if (said_ > 0 && slow >= kSlower * said_) return "";
  said_ = slow;
  return format("{} images/s in the last two epochs, {:.0f}% below the {} of epoch {}: {}", rate_text(slow),
                100 * (1 - slow / best_.images_per_second), rate_text(best_.images_per_second), best_.number,
                cause(best_, now));
}

}  // namespace stoker::observe
