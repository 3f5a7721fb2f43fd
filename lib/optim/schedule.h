// SPDX-License-Identifier: Apache-2.0
// The learning rate as a pure function of the number of optimizer updates done. Torch-free, stateless.
#pragma once

#include <cstdint>

#include "config/options.h"

namespace stoker::optim {

class Schedule {
 public:
  /// `total_updates` and `updates_per_epoch` are > 0. Milestones and warm-up are given in epochs.
  Schedule(const config::ScheduleOptions& options, double peak_lr, int64_t total_updates,
           int64_t updates_per_epoch);

  /// Learning rate for update number `update` (0 is the first). Past the end: the last value.
  /// one_cycle equals torch.optim.lr_scheduler.OneCycleLR with cos annealing; cosine is Loshchilov & Hutter 2017
  /// (eq. 5) without restarts, after the warm-up; step and multistep as torch's.
  double at(int64_t update) const;

 private:
  config::ScheduleOptions options_;
  double peak_lr_;
  int64_t total_updates_;
  int64_t updates_per_epoch_;
};

}  // namespace stoker::optim
