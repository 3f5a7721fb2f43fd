// SPDX-License-Identifier: Apache-2.0
// Threads that work on one thing until it is done. Their owner decides what they share, and when they end.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace stoker::core {

/// One owner, who adds threads and waits for them. The destructor waits: the owner of a pool of threads that wait for
/// something makes them end before.
class WorkerPool {
 public:
  WorkerPool() = default;
  ~WorkerPool();
  WorkerPool& operator=(WorkerPool&&) = delete;  // not copied, not moved

  /// Runs `work` on a thread of its own. False when the system gives no more threads. Throws std::bad_alloc.
  bool add(std::function<void()> work);
  /// Threads that were added since the last wait().
  int64_t size() const { return static_cast<int64_t>(threads_.size()); }
  /// Waits until every thread has ended. Returns the first exception that one ended with, else null.
  std::exception_ptr wait();

 private:
  std::mutex mutex_;  ///< guards failure_
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

/// Calls visit(0), visit(1), ... visit(count - 1), each once, on up to `threads` threads of which this is one: fewer
/// where the system gives no more. `make_visit` is called once on each thread, so that a visit may have scratch of its
/// own. When a visit throws, no further one begins, and the first exception is rethrown. Throws StopRequested between
/// visits.
void for_each_index(int64_t count, int64_t threads,
                    const std::function<std::function<void(int64_t index)>()>& make_visit);

// Whether threads can be started, tried before libraries need them: OpenMP ends the process when a thread cannot be
// made, and LibTorch's pool waits for it for ever, where no signal ends the wait.

/// Makes `count` threads at once and lets them end. Throws Error{os} with the number that could be made.
void require_threads(int64_t count);

}  // namespace stoker::core
