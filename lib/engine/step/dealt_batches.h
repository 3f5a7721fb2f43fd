// SPDX-License-Identifier: Apache-2.0
// The batches of one update, for lanes that each ask for those of their replica whenever they come to them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/system/mutex.h"
#include "engine/run/plan.h"
#include "engine/step/batch_feed.h"

namespace stoker::engine {

class DealtBatches {
 public:
  /// Those of `window` that this rank computes, which are the next ones of `feed`, in the order of own_batches(). Takes
  /// the first, if there is one; `may_stop` as in BatchFeed::next().
  DealtBatches(BatchFeed& feed, const UpdateWindow& window, const RankShare& share, bool may_stop);

  /// Batch number `batch` of the window; each may be taken once. Any thread. What comes before it in the feed waits for
  /// those that will ask for it.
  data::Batch take(int64_t batch);

 private:
  void read_next(bool may_stop) STOKER_REQUIRES(mutex_);

  BatchFeed& feed_;
  const std::vector<int64_t> order_;
  core::Mutex mutex_;
  size_t read_ STOKER_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, data::Batch> waiting_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace stoker::engine
