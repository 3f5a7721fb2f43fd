// SPDX-License-Identifier: Apache-2.0
// The next action of the loop: stop, save, end. Decided in one place once per update; in a group all ranks decide the
// same.
#pragma once

#include <chrono>
#include <cmath>
#include <optional>

#include "core/format.h"
#include "core/time/clock.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/group/group.h"
#include "engine/run/plan.h"
#include "engine/run/run_progress.h"

namespace stoker::engine {

struct Decision {
  bool stops = false;               ///< a stop was requested: the run is saved and ends
  std::optional<StopReason> limit;  ///< that is reached: the epoch is validated, the run is saved and ends
  bool reports = false;             ///< a report is due, by rank 0's clock
  bool saves = false;               ///< a checkpoint is due or was requested
  bool evaluates = false;           ///< an evaluation is due, inside the epoch or at its end
  double train_seconds = 0;         ///< training time of the run by rank 0's clock; see RunProgress
  int64_t bad_samples = 0;          ///< the most that any rank counts
  double waited = 0;                ///< seconds: the least that any rank has waited for the others
};

/// From this process's signals, clock and counts. Every rank calls this after the same updates, and all get the same
/// result: a stop or a save that any rank wants, and the limit that rank 0 has reached, whose clock is that of the
/// run. One thread. Throws core::Error{peer_lost}.
class Decisions {
 public:
  /// `keep_every`: checkpoints are due then, too.
  Decisions(const RunLimits& limits, config::Interval save_every, config::Interval report_every, Group& group = alone(),
            config::Interval evaluate_every = {}, config::Interval keep_every = {})
      : limits_(limits),
        save_every_(save_every),
        report_every_(report_every),
        evaluate_every_(evaluate_every),
        keep_every_(keep_every),
        group_(group) {}

  /// Once after every update. For an epoch's last update only stop, report and evaluation are decided: the rest waits
  /// for after_epoch(). `bad_samples`: that this rank counts so far. `waited`: seconds, for other ranks in this update.
  Decision after_update(const RunProgress& at, bool is_last_of_epoch, int64_t bad_samples = 0, double waited = 0);
  /// Once at an epoch's end, with `at` moved on to the next epoch, or left in this one that a limit cut short.
  Decision after_epoch(const RunProgress& at);
  /// Once after an evaluation inside an epoch: limit and clock alone.
  Decision after_evaluation(const RunProgress& at) const;
  /// Whether an evaluation is due that was not made: by `at.updates`, or by the clock of the run, `at.train_seconds`.
  bool owes_evaluation(const RunProgress& at) const;

 private:
  Decision own_after_update(const RunProgress& at, bool is_last_of_epoch);
  Decision own_after_epoch(const RunProgress& at);
  Decision agreed(const Decision& own) const;

  RunLimits limits_;
  Cadence save_every_, report_every_;
  config::Interval evaluate_every_;
  Cadence keep_every_;
  Group& group_;
};

// A run under way: where it stands, by which clock, and whether it continues.

struct Run {
  explicit Run(const RunProgress& from) : at(from), seconds_before(from.train_seconds) {}

  RunProgress at;
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  const double seconds_before;    ///< training time of earlier processes
  bool is_cut_short = false;      ///< a limit was reached within the epoch, which is validated and stays under way
  std::optional<StopReason> end;  ///< why nothing more is trained; none: the run continues

  double elapsed_seconds() const { return core::seconds_since(begin); }
  /// Training and validation, over all processes of the run.
  double train_seconds() const { return seconds_before + elapsed_seconds(); }
  /// Whether another update of the epoch follows.
  bool trains(int64_t updates_per_epoch) const {
    return !end && !is_cut_short && at.update_in_epoch < updates_per_epoch;
  }
  /// Applies the decision after an update. A stop ends the run where it is, a limit once the epoch is validated.
  void follow(const Decision& decision) {
    if (decision.limit) is_cut_short = true;
    if (decision.stops) end = StopReason::signal;
  }
};

// The errors for a loss that is no longer finite, and for float16 gradients that never are.

/// `loss`: NaN or infinite, seen at `at`. Names the last good checkpoint.
inline core::Error diverged_loss(double loss, const RunProgress& at, const CheckpointFiles& files) {
  const char* const value = std::isnan(loss) ? "NaN" : loss > 0 ? "infinite" : "minus infinity";  // no "-nan"
  return diverged_error(
      core::format("the loss is {} at update {} (learning rate {:g})", value, at.updates, at.learning_rate), files);
}

/// Where a run that trains on nothing ends.
struct SkipLimits {
  double min_scale = 0;     ///< least loss scale
  int64_t max_skipped = 0;  ///< updates in a row; 0: no limit
};

/// Throws Error{diverged} when updates are skipped beyond a limit. Else it waits for no save that is under way.
inline void require_learning(const optim::LossScale& seen, const SkipLimits& limits, const RunProgress& at,
                             Checkpoints& checkpoints) {
  // At a scale below 1 gradients overflow by themselves.
  const std::string without_scale = "train with --amp bfloat16 or --no-amp, or lower --lr";
  if (limits.max_skipped > 0 && seen.skipped_in_row >= limits.max_skipped) {
    throw diverged_error(core::format("float16 gradients overflowed in {} updates in a row, up to update {} (loss "
                                      "scale {:g}); --max-skipped is {}",
                                      seen.skipped_in_row, at.updates, seen.scale, limits.max_skipped),
                         checkpoints.files(),
                         seen.scale > 1
                             ? "lower --loss-scale, or raise --max-skipped, so that the scale can fall further"
                             : without_scale);
  }
  if (seen.scale < limits.min_scale) {
    throw diverged_error(core::format("float16 gradients overflow at update {} although the loss scale is {:g}; "
                                      "--min-scale is {:g}",
                                      at.updates, seen.scale, limits.min_scale),
                         checkpoints.files(), seen.scale > 1 ? "lower --min-scale" : without_scale);
  }
}

}  // namespace stoker::engine
