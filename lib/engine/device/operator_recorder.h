// SPDX-License-Identifier: Apache-2.0
// Some updates of a run under LibTorch's profiler. What it recorded becomes an OperatorTable; who reads that is not
// known here.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "engine/run/operator_table.h"

namespace stoker::engine {

/// One thread: that of the trainer. Not recorded, an update costs nothing more.
class OperatorRecorder {
 public:
  /// `may_use_events`: where the profiler cannot see a CUDA device's kernels, events around each operator measure the
  /// time on the device. Not while updates are recorded as graphs.
  OperatorRecorder(torch::Device device, bool may_use_events) : device_(device), may_use_events_(may_use_events) {}

  /// Leaves out the next `skipped` updates, which LibTorch and its libraries prepare themselves in, and records
  /// `count`.
  void begin(int64_t skipped, int64_t count);
  /// Calls update(), and records it where it is its turn. One that throws is not recorded.
  void update(const std::function<void()>& update);
  bool is_done() const { return to_record_ == 0; }
  const OperatorTable& table() const { return table_; }

 private:
  const torch::Device device_;
  const bool may_use_events_;
  bool uses_events_ = false;
  int64_t to_skip_ = 0, to_record_ = 0;
  OperatorTable table_;
};

}  // namespace stoker::engine
