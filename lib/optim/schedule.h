// SPDX-License-Identifier: Apache-2.0
// The learning rate, and with one-cycle the momentum, as pure functions of the number of optimizer updates done.
// Torch-free, stateless.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/options.h"

namespace stoker::optim {

/// The rates of the schedule for one update.
struct UpdateRates {
  UpdateRates(double learning_rate, std::optional<double> momentum_or_beta1 = std::nullopt)  // NOLINT: mostly one rate
      : lr(learning_rate), momentum(momentum_or_beta1) {}
  double lr;
  std::optional<double> momentum;  ///< SGD's momentum or Adam's beta1; nullopt: as the optimizer's options have it
};

class Schedule {
 public:
  /// `total_updates` and `updates_per_epoch` are > 0. Milestones and warm-up are given in epochs, counted
  /// from the start of training; an epoch's updates are rounded to the nearest whole update.
  Schedule(const config::ResolvedScheduleOptions& options, double peak_lr, int64_t total_updates,
           int64_t updates_per_epoch);

  /// Learning rate for update number `update` (0 is the first). Past the end: the value of the last update.
  /// Warm-up rises in a straight line from warmup_lr at update 0 and reaches the peak after warmup_epochs.
  /// constant, step, multistep: as torch.optim.lr_scheduler's StepLR and MultiStepLR, but never below min_lr.
  /// cosine (Loshchilov & Hutter 2017, eq. 5, without restarts) and polynomial: from the peak when warm-up
  /// ends towards min_lr at total_updates. one_cycle: OneCycleLR with cos annealing; it has its own warm-up
  /// and end, so warmup_epochs and min_lr do not matter.
  /// cosine_restarts: as torch's CosineAnnealingWarmRestarts, but cycles may grow by any factor and start lower each
  /// time; the first begins when warm-up ends. wsd: the peak, and in the last `cooldown` epochs a straight line to
  /// min_lr. plateau: the peak, times decay_rate for each of the `cuts` so far (RunProgress::rate_cuts), but never
  /// below min_lr.
  double at(int64_t update, int64_t cuts = 0) const;
  /// Whether an evaluation after `updates` updates counts for plateau: none in the warm-up does.
  bool counts_for_plateau(int64_t updates) const;
  const config::ResolvedScheduleOptions& options() const { return options_; }
  /// SGD's momentum or Adam's beta1 for update number `update`, as OneCycleLR moves it with cos annealing: from
  /// one_cycle_max_momentum to one_cycle_base_momentum at the peak of the learning rate, and back. nullopt for other
  /// schedules and without one_cycle_momentum.
  std::optional<double> momentum_at(int64_t update) const;
  UpdateRates rates_at(int64_t update, int64_t cuts = 0) const { return {at(update, cuts), momentum_at(update)}; }

 private:
  double after_warmup(int64_t update, int64_t cuts) const;
  double restarted_cosine(double update) const;
  int64_t decays_until(int64_t update) const;

  config::ResolvedScheduleOptions options_;
  double peak_lr_;
  int64_t total_updates_;
  int64_t updates_per_epoch_;
  int64_t warmup_updates_;
};

}  // namespace stoker::optim
