// SPDX-License-Identifier: Apache-2.0
// One save at a time on a thread of its own.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "engine/run/events.h"

namespace stoker::engine {

/// Used by one thread.
class SavingThread {
 public:
  SavingThread() = default;
  /// Waits. An error of a save that nobody took is logged.
  ~SavingThread();
  SavingThread(const SavingThread&) = delete;
  SavingThread& operator=(const SavingThread&) = delete;

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

}  // namespace stoker::engine
