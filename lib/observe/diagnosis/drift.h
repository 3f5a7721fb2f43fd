// SPDX-License-Identifier: Apache-2.0
// Whether a run has become slower from epoch to epoch, and what changed along with it.
#pragma once

#include <string>

#include "engine/run/events.h"

namespace stoker::observe {

/// One thread. The first epoch of a process is left out: it fills caches and measures. What is compared are windows
/// of epochs that train for at least kLeastSeconds together: shorter ones depend on what else the machine did in that
/// moment.
class DriftWatch {
 public:
  /// Share of the best rate below which two windows in a row have to stay.
  static constexpr double kSlower = 0.85;
  static constexpr double kLeastSeconds = 10;  ///< least duration of a window; mostly one epoch

  /// After each epoch. "" or the verdict: "640 images/s in the last two epochs, 37% below the 1,020 of epoch 2: ...".
  /// Returned once, and again when the run has lost as much once more.
  std::string judge(const engine::EpochEvent& event);

 private:
  struct EpochWindow {
    int64_t first = 0, last = 0;  ///< epochs, from 1; 0: none yet
    double seconds = 0, images_per_second = 0, data_wait_share = 0;
    double other_cpus = -1;      ///< kept busy by other processes; -1: not known
    double waiting_threads = 0;  ///< number of this process's threads ready to run, without a CPU; 0 where not known
    double exchange_share = 0;
    bool is_slowed = false;  ///< the GPU's clocks are below what the board allows

    /// Means by time.
    void append(const EpochWindow& next);
    std::string name() const;  ///< "epoch 2", "epochs 2 to 40"
  };
  static EpochWindow window_of(const engine::EpochEvent& event);
  static std::string cause(const EpochWindow& best, const EpochWindow& now);
  std::string compare(const EpochWindow& now);

  bool is_first_ = true;
  EpochWindow best_, before_, open_;
  double reported_ = 0;  ///< rate at the last verdict; 0: none
};

}  // namespace stoker::observe
