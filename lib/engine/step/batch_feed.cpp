// SPDX-License-Identifier: Apache-2.0
#include "engine/step/batch_feed.h"

#include "core/error.h"
#include "core/system/stop_signal.h"

namespace stoker::engine {

data::Batch EpochFeed::next(bool may_stop) {
  data::Batch batch;
  if (!feed_.next(batch, may_stop)) throw core::Error(core::ErrorKind::bug, "the loader ended before its epoch did");
  return batch;
}

data::Batch RepeatedBatch::next(bool may_stop) {
  if (may_stop) core::throw_if_stopped();
  return batch_;
}

}  // namespace stoker::engine
