// SPDX-License-Identifier: Apache-2.0
// Where the time of updates goes, as plain values. Torch-free, so that observers may read it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/time/durations.h"
#include "data/loader/loader_stats.h"

namespace stoker::engine {

/// What the training thread does between the start of an update and the start of the next.
enum class StepPart {
  wait,       ///< for the loader
  copy,       ///< onto the device, or into normalised floats on the CPU
  forward,    ///< with the loss
  backward,   ///< and, of several replicas, adding what they found within this process
  exchange,   ///< waiting for the sums over ranks
  optimizer,  ///< with clipping, loss scaling and moving average
  report,     ///< reading figures from the device (the one host sync), showing and writing them
  save,       ///< checkpoints
  other       ///< the rest: sums, listeners, limits
};
inline constexpr size_t kStepParts = 9;
inline constexpr std::array<const char*, kStepParts> kStepPartNames = {
    "wait", "copy", "forward", "backward", "exchange", "optimizer", "report", "save", "other"};

/// Seconds per update, by part.
struct StepParts {
  std::array<core::Spread, kStepParts> spreads;
  const core::Spread& operator[](StepPart part) const { return spreads[static_cast<size_t>(part)]; }
  core::Spread& operator[](StepPart part) { return spreads[static_cast<size_t>(part)]; }
};

/// Seconds per sample, by stage of a worker.
struct StageSpreads {
  core::Spread read, decode, resize, augment, write;
};

/// A window of updates: since the last report, or since the epoch began. Validation is no part of it.
struct StepTimings {
  int64_t updates = 0;
  double seconds = 0;       ///< of all of them
  double wall_seconds = 0;  ///< from reading to reading: what the loader's and the CPU's figures are of
  core::Spread update;      ///< from the start of one to the start of the next
  StepParts parts;          ///< by the clock of the training thread
  core::Spread exchange;  ///< seconds per update in which sums over ranks were under way, also behind the backward pass
  double exchanged_bytes = 0;  ///< that this rank sent per update; 0 where it is alone
  bool has_device = false;
  double lag_seconds = 0;  ///< how long after the host the device comes to the start of an update; near 0: it waits for
                           ///< what the host launches
  StepParts device;        ///< by the clock of a CUDA device: `wait` and `copy` are one there, and all that it idles
  StageSpreads sample;
  data::LoaderStats loader;         ///< seconds and counts of the window; sizes as they are now
  double training_cpu_seconds = 0;  ///< of the training thread
  double process_cpu_seconds = 0;   ///< of all threads

  /// What judges where the time went: by the device's clock where it has one. The host runs ahead of a device: it may
  /// wait for data while the device computes, and its own forward and backward are times of launching.
  const StepParts& judged() const { return has_device ? device : parts; }
  /// Whether the device has nothing left to do when an update begins although the host did not wait for data: launching
  /// is what takes the time.
  bool host_holds_device_up() const {
    constexpr double kCaughtUp = 0.1, kWaits = 0.05;  // shares of an update
    return has_device && update.mean_seconds > 0 && lag_seconds < kCaughtUp * update.mean_seconds &&
           parts[StepPart::wait].mean_seconds < kWaits * update.mean_seconds;
  }
  /// Of the time of the updates, 0 to 1; by the clock of judged().
  double share(StepPart part) const {
    return update.mean_seconds > 0 ? judged()[part].mean_seconds / update.mean_seconds : 0;
  }
  /// Per update: forward, backward and optimizer, by the clock of judged().
  double computing_seconds() const {
    return judged()[StepPart::forward].mean_seconds + judged()[StepPart::backward].mean_seconds +
           judged()[StepPart::optimizer].mean_seconds;
  }
  /// Of the time that sums over ranks took, how much the training thread did not wait: 0 to 1; 0 where there were none.
  double hidden_exchange_share() const {
    if (exchange.mean_seconds <= 0) return 0;
    return std::clamp(1 - parts[StepPart::exchange].mean_seconds / exchange.mean_seconds, 0.0, 1.0);
  }
  /// Batches that were decoded and waiting when one was asked for.
  double mean_queue() const {
    return loader.batches_asked_for > 0
               ? static_cast<double>(loader.ready_when_asked) / static_cast<double>(loader.batches_asked_for)
               : 0;
  }
};

}  // namespace stoker::engine
