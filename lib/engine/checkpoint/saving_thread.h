// SPDX-License-Identifier: Apache-2.0
// One save at a time on a thread of its own.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engine/run/events.h"
#include "model/image_model.h"

namespace stoker::engine {

/// Used by one thread.
class SavingThread {
 public:
  SavingThread() = default;
  /// Waits. An error of a save that nobody took is logged.
  ~SavingThread();
  SavingThread& operator=(SavingThread&&) = delete;  // not copied, not moved

  /// Runs `save` beside the caller, or right here where the system gives no thread. Nothing may be under way or wait to
  /// be taken.
  void begin(std::function<CheckpointEvent()> save);
  /// begin() without a thread: runs `save` before it returns.
  void run_here(std::function<CheckpointEvent()> save);
  /// Until nothing is under way; take() then has its end.
  void wait();
  /// Whether a save was begun whose end nobody took.
  bool is_begun() const { return ended_.valid(); }
  /// The save that has ended since, if one has; throws what it threw.
  std::optional<CheckpointEvent> take();

 private:
  using Task = std::packaged_task<CheckpointEvent()>;
  std::shared_ptr<Task> task_of(std::function<CheckpointEvent()> save);

  std::future<CheckpointEvent> ended_;
  std::thread thread_;
};

// Copies of tensors in one block of host memory, so that training continues while they are written.

using model::NamedTensor;

/// The block stays for the next save: fresh memory would cost more than the copy. One thread at a time.
class Staging {
 public:
  /// Memory for `device` tensors; page-locked where that is a CUDA device.
  explicit Staging(torch::Device device) : device_(device) {}

  /// Copies of all groups, in CPU memory with the strides of their tensors, good until the next call. Waits for the
  /// device once, at the end. Throws Error{out_of_memory}.
  std::vector<std::vector<NamedTensor>> copy(const std::vector<std::vector<NamedTensor>>& groups);

  int64_t bytes() const { return block_.defined() ? block_.numel() : 0; }

 private:
  torch::Device device_;
  std::unique_ptr<char[]> memory_;  ///< memory for copies on a CPU: LibTorch's allocator is for what comes and goes
  torch::Tensor block_;             ///< uint8 [bytes]
};

}  // namespace stoker::engine
