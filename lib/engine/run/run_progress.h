// SPDX-License-Identifier: Apache-2.0
// Where a training run stands, as one value that is saved and restored whole. Weights and optimizer state are
// kept elsewhere; random streams need no state, being functions of (seed, epoch, sample). Torch-free.
#pragma once

#include <cstdint>
#include <string>

#include "core/text/json.h"

namespace stoker::engine {

struct RunProgress {
  int64_t epoch = 0;            ///< epochs finished, validation included
  int64_t update_in_epoch = 0;  ///< updates done in the epoch under way
  int64_t updates = 0;          ///< optimizer updates of the whole run
  int64_t images = 0;           ///< images trained on in the whole run
  double learning_rate = 0;     ///< of the last update

  // Sums over the epoch under way, so that its averages survive a stop in the middle.
  double epoch_loss_sum = 0;
  double epoch_score_sum = 0;  ///< see Task::score_sum
  int64_t epoch_images = 0;

  double best_value = 0;      ///< of the evaluation metric; meaningless while best_epoch is -1
  int64_t best_epoch = -1;    ///< 0-based
  int64_t best_updates = -1;  ///< names the checkpoint of the best epoch
  int64_t epochs_without_improvement = 0;

  /// The number of micro-batches of each batch since memory ran out; see UpdateStep::set_micro_batches().
  int64_t micro_batches = 1;

  double train_seconds = 0;  ///< training and validation, over all processes of the run; a clock, not bits

  /// One more update of the epoch under way is done, on `new_images` images. `rate`: its learning rate.
  void add_update(int64_t new_images, double rate, int64_t batch_micro_batches);
  /// An evaluation of it came to `value`. Returns whether that is the best so far; less than `min_delta` better than
  /// the best counts as no improvement.
  bool note_result(double value, bool lower_is_better, double min_delta);
  /// The epoch under way is over: what is counted of it begins anew.
  void begin_next_epoch();

  core::Json to_json() const;
  /// Throws Error{data} naming the field that is missing or of the wrong type; `what` is a path for the message.
  /// "pieces" may be missing: it came later.
  static RunProgress from_json(const core::Json& json, const std::string& what);
};

}  // namespace stoker::engine
