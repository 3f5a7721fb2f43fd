// SPDX-License-Identifier: Apache-2.0
// Mutexes whose use clang checks (-Wthread-safety; scripts/check_tidy.sh): which member a mutex guards, and which
// function wants it held, is written beside them. With other compilers the words mean nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define STOKER_THREAD_ANNOTATION(annotation) __attribute__((annotation))
#else
#define STOKER_THREAD_ANNOTATION(annotation)
#endif

/// The member may be read and written only while `mutex` is held.
#define STOKER_GUARDED_BY(mutex) STOKER_THREAD_ANNOTATION(guarded_by(mutex))
/// The function may be called only while `mutex` is held, and leaves it held.
#define STOKER_REQUIRES(mutex) STOKER_THREAD_ANNOTATION(requires_capability(mutex))

namespace stoker::core {

/// std::mutex, with annotations.
class STOKER_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() STOKER_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() STOKER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class Condition;

  std::mutex mutex_;
};

/// Holds a mutex for its lifetime.
class STOKER_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) STOKER_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() STOKER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock& operator=(MutexLock&&) = delete;  // not copied, not moved

 private:
  Mutex& mutex_;
};

/// std::condition_variable for a Mutex. A wait may end without a notice: call it in a loop that looks at what it waits
/// for, not with a function, in which the mutex would not be seen to be held.
class Condition {
 public:
  /// Gives the mutex up while it waits.
  void wait(Mutex& mutex) STOKER_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  /// At most as long as that.
  void wait_for(Mutex& mutex, std::chrono::milliseconds time) STOKER_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    changed_.wait_for(lock, time);
    lock.release();
  }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace stoker::core
