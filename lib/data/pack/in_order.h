// SPDX-License-Identifier: Apache-2.0
// Work on consecutive numbers, done by threads and handed over in order. Knows nothing of the work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "core/system/stop_signal.h"
#include "core/system/worker_pool.h"

namespace stoker::data {

/// One consumer thread. Results are reused: memory is bounded by 2 * threads + 2 of them.
template <typename Result>
class InOrder {
 public:
  using Work = std::function<void(int64_t number, Result& result)>;

  /// Works on first, first + 1, ... end - 1. `make_work` is called once per thread, on this one; without threads, or
  /// where the system gives none, the work is done inside next().
  InOrder(int64_t first, int64_t end, int64_t threads, const std::function<Work()>& make_work)
      : slots_(static_cast<size_t>(2 * threads + 2)), end_(end), claimed_(first), wanted_(first), freed_(first) {
    try {
      for (int64_t i = 0; i < threads && threads_.add([this, work = make_work()] { work_on(work); }); ++i) {
      }
      if (threads_.size() == 0) own_work_ = make_work();
    } catch (...) {
      quit();
      throw;
    }
  }
  ~InOrder() { quit(); }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

  /// The next result, valid until the next call; nullptr at the end. Rethrows what the work threw; throws
  /// core::StopRequested while it waits.
  Result* next() {
    core::throw_if_stopped();
    if (wanted_ == end_) return nullptr;
    Slot& slot = slot_of(wanted_);
    if (own_work_) {
      own_work_(wanted_++, slot.result);
      return &slot.result;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    freed_ = wanted_;
    freed_one_.notify_all();
    while (!done_one_.wait_for(lock, std::chrono::milliseconds(50), [&] { return slot.done; })) {
      core::throw_if_stopped();
    }
    slot.done = false;
    ++wanted_;
    if (slot.error) std::rethrow_exception(slot.error);
    return &slot.result;
  }

 private:
  struct Slot {
    Result result;
    std::exception_ptr error;
    bool done = false;
  };

  /// Ends the threads.
  void quit() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      quitting_ = true;
    }
    freed_one_.notify_all();
    threads_.wait();
  }

  Slot& slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  void work_on(const Work& work) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      freed_one_.wait(lock, [&] {
        return quitting_ || claimed_ == end_ || claimed_ < freed_ + static_cast<int64_t>(slots_.size());
      });
      if (quitting_ || claimed_ == end_) return;
      const int64_t number = claimed_++;
      Slot& slot = slot_of(number);
      lock.unlock();
      try {
        work(number, slot.result);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      slot.done = true;
      done_one_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable freed_one_, done_one_;
  std::vector<Slot> slots_;
  const int64_t end_;
  int64_t claimed_;  ///< next number for a thread
  int64_t wanted_;   ///< next number for the consumer, who alone touches it
  int64_t freed_;    ///< results below this are no longer looked at
  bool quitting_ = false;
  Work own_work_;
  core::WorkerPool threads_;  ///< last: they use all of the above
};

}  // namespace stoker::data
