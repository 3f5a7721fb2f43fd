// SPDX-License-Identifier: Apache-2.0
// Work on consecutive numbers, done by threads and handed over in order.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "core/system/mutex.h"
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
      : slots_(static_cast<size_t>(2 * threads + 2)),
        end_(end),
        wanted_(first),
        claimed_(first),
        freed_(first),
        is_done_(slots_.size()) {
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
    Slot& slot = slots_[slot_of(wanted_)];
    if (own_work_) {
      own_work_(wanted_++, slot.result);
      return &slot.result;
    }
    const core::MutexLock lock(mutex_);
    freed_ = wanted_;
    freed_one_.notify_all();
    while (!is_done_[slot_of(wanted_)]) {
      done_one_.wait_for(mutex_, std::chrono::milliseconds(50));
      core::throw_if_stopped();
    }
    is_done_[slot_of(wanted_++)] = false;
    if (slot.error) std::rethrow_exception(slot.error);
    return &slot.result;
  }

 private:
  struct Slot {
    Result result;
    std::exception_ptr error;
  };

  /// Ends the threads.
  void quit() {
    {
      const core::MutexLock lock(mutex_);
      quitting_ = true;
    }
    freed_one_.notify_all();
    threads_.wait();
  }

  size_t slot_of(int64_t number) const { return static_cast<size_t>(number) % slots_.size(); }

  /// The next number, once it has a slot; false: there is none for this thread.
  bool claim(int64_t& number) {
    const core::MutexLock lock(mutex_);
    const auto slots = static_cast<int64_t>(slots_.size());
    while (!quitting_ && claimed_ != end_ && claimed_ >= freed_ + slots) freed_one_.wait(mutex_);
    if (quitting_ || claimed_ == end_) return false;
    number = claimed_++;
    return true;
  }

  void work_on(const Work& work) {
    int64_t number = 0;
    while (claim(number)) {
      Slot& slot = slots_[slot_of(number)];
      try {
        work(number, slot.result);
      } catch (...) {
        slot.error = std::current_exception();
      }
      const core::MutexLock lock(mutex_);
      is_done_[slot_of(number)] = true;
      done_one_.notify_one();
    }
  }

  std::vector<Slot> slots_;  ///< each of the thread that claimed its number, then of the consumer
  const int64_t end_;
  int64_t wanted_;  ///< next number for the consumer, who alone touches it
  Work own_work_;

  core::Mutex mutex_;
  core::Condition freed_one_, done_one_;
  int64_t claimed_ STOKER_GUARDED_BY(mutex_);            ///< next number for a thread
  int64_t freed_ STOKER_GUARDED_BY(mutex_);              ///< results below this are no longer looked at
  std::vector<bool> is_done_ STOKER_GUARDED_BY(mutex_);  ///< by slot
  bool quitting_ STOKER_GUARDED_BY(mutex_) = false;
  core::WorkerPool threads_;  ///< last: they use all of the above
};

}  // namespace stoker::data
