// SPDX-License-Identifier: Apache-2.0
// Learning rates and momenta by formula, for any optimizer.
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace stoker::optim {
namespace {

constexpr double kPi = 3.14159265358979323846;

int64_t epochs_to_updates(double epochs, int64_t updates_per_epoch) {
  return std::llround(epochs * static_cast<double>(updates_per_epoch));
}

/// From `start` at share 0 to `end` at share 1 along half a cosine.
double cosine_between(double start, double end, double share) {
  return end + (start - end) / 2 * (1 + std::cos(kPi * share));
}

/// From `first` at update 0 to `peak` to `last` at the last update, along half a cosine each:
/// torch.optim.lr_scheduler.OneCycleLR, anneal_strategy="cos", three_phase=False.
double one_cycle(double first, double peak, double last, double pct_start, int64_t update, int64_t total_updates) {
  const double peak_update = pct_start * static_cast<double>(total_updates) - 1;
  const auto at = static_cast<double>(update);
  if (at <= peak_update) return peak_update > 0 ? cosine_between(first, peak, at / peak_update) : peak;
  const double length = static_cast<double>(total_updates - 1) - peak_update;
  return length > 0 ? cosine_between(peak, last, (at - peak_update) / length) : last;
}

}  // namespace

Schedule::Schedule(const config::ResolvedScheduleOptions& options, double peak_lr, int64_t total_updates,
                   int64_t updates_per_epoch)
    : options_(options),
      peak_lr_(peak_lr),
      total_updates_(std::max<int64_t>(total_updates, 1)),
      updates_per_epoch_(std::max<int64_t>(updates_per_epoch, 1)),
      warmup_updates_(options.sched == config::ScheduleKind::one_cycle
                          ? 0
                          : epochs_to_updates(options.warmup_epochs, updates_per_epoch_)) {}

double Schedule::at(int64_t update, int64_t cuts) const {
  update = std::clamp<int64_t>(update, 0, total_updates_ - 1);
  if (update < warmup_updates_) {
    const double share = static_cast<double>(update) / static_cast<double>(warmup_updates_);
    return options_.warmup_lr + (peak_lr_ - options_.warmup_lr) * share;
  }
  return after_warmup(update, cuts);
}

bool Schedule::counts_for_plateau(int64_t updates) const {
  return options_.sched == config::ScheduleKind::plateau && updates >= warmup_updates_;
}

std::optional<double> Schedule::momentum_at(int64_t update) const {
  if (options_.sched != config::ScheduleKind::one_cycle || !options_.one_cycle_momentum) return std::nullopt;
  return one_cycle(options_.one_cycle_max_momentum, options_.one_cycle_base_momentum, options_.one_cycle_max_momentum,
                   options_.one_cycle_pct_start, std::clamp<int64_t>(update, 0, total_updates_ - 1), total_updates_);
}

/// `update`: from the end of warm-up.
double Schedule::restarted_cosine(double update) const {
  double peak = peak_lr_;
  double length = std::max(1.0, static_cast<double>(epochs_to_updates(options_.cycle_epochs, updates_per_epoch_)));
  while (update >= length) {
    update -= length;
    length *= options_.cycle_mult;
    peak *= options_.cycle_decay;
  }
  return cosine_between(std::max(peak, options_.min_lr), options_.min_lr, update / length);
}

double Schedule::after_warmup(int64_t update, int64_t cuts) const {
  const double share = static_cast<double>(update - warmup_updates_) /
                       static_cast<double>(std::max<int64_t>(total_updates_ - warmup_updates_, 1));
  switch (options_.sched) {
    case config::ScheduleKind::constant: return peak_lr_;
    case config::ScheduleKind::step:
    case config::ScheduleKind::multistep:
      return std::max(options_.min_lr,
                      peak_lr_ * std::pow(options_.decay_rate, static_cast<double>(decays_until(update))));
    case config::ScheduleKind::cosine: return cosine_between(peak_lr_, options_.min_lr, share);
    case config::ScheduleKind::polynomial:
      return options_.min_lr + (peak_lr_ - options_.min_lr) * std::pow(1 - share, options_.poly_power);
    case config::ScheduleKind::cosine_restarts: return restarted_cosine(static_cast<double>(update - warmup_updates_));
    case config::ScheduleKind::wsd: {
      const int64_t length = std::max<int64_t>(1, epochs_to_updates(options_.cooldown, updates_per_epoch_));
      const int64_t done = std::max<int64_t>(0, update - (total_updates_ - length));
      return peak_lr_ + (options_.min_lr - peak_lr_) * static_cast<double>(done) / static_cast<double>(length);
    }
    case config::ScheduleKind::plateau:
      return std::max(options_.min_lr, peak_lr_ * std::pow(options_.decay_rate, static_cast<double>(cuts)));
    case config::ScheduleKind::one_cycle: {
      const double start_lr = peak_lr_ / options_.one_cycle_div_factor;
      return one_cycle(start_lr, peak_lr_, start_lr / options_.one_cycle_final_div_factor, options_.one_cycle_pct_start,
                       update, total_updates_);
    }
  }
  return peak_lr_;
}

int64_t Schedule::decays_until(int64_t update) const {
  if (options_.sched == config::ScheduleKind::step) {
    return update / std::max<int64_t>(epochs_to_updates(options_.decay_epochs, updates_per_epoch_), 1);
  }
  int64_t decays = 0;
  for (const double milestone : options_.decay_milestones) {
    if (update >= epochs_to_updates(milestone, updates_per_epoch_)) ++decays;
  }
  return decays;
}

}  // namespace stoker::optim
