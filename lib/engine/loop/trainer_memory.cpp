// SPDX-License-Identifier: Apache-2.0
// What the training loop does when memory runs out in an update.
#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "engine/device/device.h"
#include "engine/device/out_of_memory.h"
#include "engine/loop/trainer.h"
#include "engine/memory/activation_arena.h"
#include "engine/step/state_snapshot.h"

namespace stoker::engine {

/// The same; when memory runs out everything is put back to where the update began, batches are computed in twice as
/// many pieces from here on, and the update is done again. Its bits are those of a run that had so many pieces from
/// this update on.
int64_t Trainer::gather_in_smaller_pieces(const UpdateWindow& window, RunProgress& at) {
  for (;;) {
    const StateSnapshot kept(*learner_.model, learner_.device);
    const RunningSums sums = sums_.copy();
    std::string cause;
    try {
      return gather_gradients(window, at);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      cause = short_text_of(error);
    }
    // Outside of the handler: what was thrown may hold on to tensors.
    learner_.optimizer->zero_grad();
    kept.restore();
    sums_ = sums;
    release_unused_memory(learner_.device);
    trim_activation_arena();
    halve_pieces(at, cause);
    train_feed_.begin_epoch(at.epoch, window.first_batch);
  }
}

void Trainer::halve_pieces(RunProgress& at, const std::string& cause) {
  const int64_t batch = settings_.plan.batch_size;
  if (batch / at.pieces < 4) {
    throw core::Error(core::ErrorKind::out_of_memory,
                      core::format("out of memory at update {} with {} images at a time: {}", at.updates + 1,
                                   std::max<int64_t>(1, batch / at.pieces), cause),
                      "choose a smaller --img-size or --model, or --grad-checkpointing; train plan says what fits");
  }
  at.pieces *= 2;
  step_.set_pieces(at.pieces);
  core::log_warning(
      "out of memory at update {} ({}): it is done again, and from here on each batch of {} is computed in {} "
      "pieces of {}; an update sees as many images as before",
      at.updates + 1, cause, batch, at.pieces, batch / at.pieces);
}

}  // namespace stoker::engine
