// SPDX-License-Identifier: Apache-2.0
// Where updates take their batches from: the loader's epochs, or one batch over and over.
#pragma once

#include "data/feed/device_feed.h"
#include "engine/run/plan.h"

namespace stoker::engine {

class BatchFeed {
 public:
  virtual ~BatchFeed() = default;
  /// The next batch; every image of it may have been skipped. `may_stop`: throws core::StopRequested once a stop is
  /// asked for, before anything is taken; else still waits.
  virtual data::Batch next(bool may_stop) = 0;
  /// Goes back to the first batch of `window`, whose update is done again.
  virtual void go_back_to(const UpdateWindow& window) = 0;
};

/// The batches of one epoch after the other, those that are this rank's own; begin_epoch() comes before the first of
/// each.
class EpochFeed : public BatchFeed {
 public:
  explicit EpochFeed(data::DeviceFeed& feed, int64_t ranks = 1) : feed_(feed), ranks_(ranks) {}
  /// `first_batch`: of its own.
  void begin_epoch(int64_t epoch, int64_t first_batch) { feed_.begin_epoch(epoch, first_batch); }
  data::Batch next(bool may_stop) override;
  void go_back_to(const UpdateWindow& window) override {
    begin_epoch(window.epoch, window.first_batch / ranks_);  // all updates before it are full
  }

 private:
  data::DeviceFeed& feed_;
  const int64_t ranks_;
};

/// Gives one batch again and again; it stays on the device.
class RepeatedBatch : public BatchFeed {
 public:
  explicit RepeatedBatch(data::Batch batch) : batch_(std::move(batch)) {}
  data::Batch next(bool may_stop) override;
  void go_back_to(const UpdateWindow&) override {}

 private:
  data::Batch batch_;
};

}  // namespace stoker::engine
