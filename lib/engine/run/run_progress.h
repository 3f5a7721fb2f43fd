// SPDX-License-Identifier: Apache-2.0
// Where a training run stands, as one value that is saved and restored whole. Weights and optimizer state are
// kept elsewhere; random streams need no state, being functions of (seed, epoch, sample). Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/text/json.h"

namespace stoker::engine {

/// The result of an evaluation, and its time. There is none while `updates` is -1.
struct Evaluated {
  double value = 0;                 ///< value of the evaluation metric
  int64_t epoch = -1;               ///< 0-based
  int64_t updates = -1;             ///< names its checkpoint
  std::optional<double> loss = {};  ///< validation loss; older states have none

  bool exists() const { return updates >= 0; }
  /// Whether `other` is better by more than `by`; any is where there is none yet.
  bool is_beaten_by(double other, bool lower_is_better, double by = 0) const;
  /// Whether the later result `other` takes its place as the best one: of equal values the lower loss decides.
  bool gives_way_to(const Evaluated& other, bool lower_is_better) const;
};

struct RunProgress {
  int64_t epoch = 0;            ///< epochs finished, validation included
  int64_t update_in_epoch = 0;  ///< updates done in the epoch under way
  int64_t updates = 0;          ///< optimizer updates of the whole run
  int64_t images = 0;           ///< images trained on in the whole run
  double learning_rate = 0;     ///< learning rate of the last update

  // Sums over the epoch under way, so that its averages survive a stop in the middle.
  double epoch_loss_sum = 0;
  double epoch_score_sum = 0;  ///< see Task::score_sum
  int64_t epoch_images = 0;

  Evaluated best;      ///< best of all evaluations so far
  Evaluated due_best;  ///< best of those that a run which is never stopped makes, too; `best` once the run continues
  Evaluated counted;   ///< last improvement among these: better by more than min-delta than the one before it
  Evaluated latest;    ///< the last one of all
  /// From `counted` to the last evaluation that was due; evaluations, where these are not made after epochs.
  int64_t epochs_without_improvement = 0;
  int64_t evaluated_updates = -1;  ///< those before the last evaluation that was due; -1: there was none
  double evaluated_seconds = 0;    ///< train_seconds then, where evaluations are due by the clock; else 0

  // State of --sched plateau, from evaluations that were due.
  Evaluated plateau_best;
  int64_t plateau_bad = 0;         ///< evaluations without an improvement since then, or since the last cut
  int64_t plateau_rest = 0;        ///< number of the next evaluations that do not count
  std::vector<int64_t> rate_cuts;  ///< updates after which it lowered the learning rate, ascending

  /// The number of micro-batches of each batch since memory ran out; see UpdateStep::set_micro_batches().
  int64_t micro_batches = 1;

  double train_seconds = 0;  ///< training and validation, over all processes of the run; a clock, not bits

  int64_t num_rate_cuts() const { return static_cast<int64_t>(rate_cuts.size()); }
  /// Where the schedule stands: the updates done, in a run whose epochs have as many each as they have now.
  int64_t schedule_update(int64_t updates_per_epoch) const { return epoch * updates_per_epoch + update_in_epoch; }
  /// One more update of the epoch under way is done, on `new_images` images. `rate`: its learning rate.
  void add_update(int64_t new_images, double rate, int64_t batch_micro_batches);
  /// An evaluation of it came to `value`, with the validation loss `loss`. Returns whether that is the best so far.
  /// `is_due`: no stop caused it; only then it may be an improvement, and epochs without one are counted, or with
  /// `counts_evaluations` these. An equal value with a lower loss is the best one, but no improvement.
  bool note_result(double value, double loss, bool lower_is_better, double min_delta, bool is_due,
                   bool counts_evaluations = false);
  /// An evaluation that was due came to `value`. The learning rate may fall from here on: the rule is that of torch's
  /// ReduceLROnPlateau with a relative threshold.
  void note_for_plateau(double value, bool lower_is_better, const config::ResolvedScheduleOptions& rule);
  /// The run continues: what was evaluated only because it stopped is no longer the best of it.
  void drop_results_of_stops() { best = due_best; }
  /// The epoch under way is over: what is counted of it begins anew.
  void begin_next_epoch();
  /// It is gone through again, with other batches.
  void begin_epoch_again();

  core::Json to_json() const;
  /// Throws Error{data} naming the field that is missing or of the wrong type; `what` is a path for the message.
  /// Fields that came later may be missing.
  static RunProgress from_json(const core::Json& json, const std::string& what);
};

}  // namespace stoker::engine
