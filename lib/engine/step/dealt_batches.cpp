// SPDX-License-Identifier: Apache-2.0
#include "engine/step/dealt_batches.h"

#include "core/error.h"

namespace stoker::engine {

DealtBatches::DealtBatches(BatchFeed& feed, const UpdateWindow& window, const RankShare& share, bool may_stop)
    : feed_(feed), order_(own_batches(window, share)) {
  const core::MutexLock lock(mutex_);
  if (!order_.empty()) read_next(may_stop);
}

data::Batch DealtBatches::take(int64_t batch) {
  const core::MutexLock lock(mutex_);
  while (waiting_.count(batch) == 0) read_next(/*may_stop=*/false);
  return std::move(waiting_.extract(batch).mapped());
}

void DealtBatches::read_next(bool may_stop) {
  if (read_ == order_.size()) throw core::Error(core::ErrorKind::bug, "a batch of another rank was asked for");
  waiting_[order_[read_]] = feed_.next(may_stop);
  ++read_;
}

}  // namespace stoker::engine
