// SPDX-License-Identifier: Apache-2.0
#include "core/system/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/crash/signal_stack.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"

namespace stoker::core {

WorkerPool::~WorkerPool() { wait(); }

bool WorkerPool::add(std::function<void()> work) {
  threads_.reserve(threads_.size() + 1);  // a thread that cannot be kept would end the process
  try {
    threads_.emplace_back([this, work = std::move(work)] {
      const SignalStack stack;
      try {
        work();
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (failure_ == nullptr) failure_ = std::current_exception();
      }
    });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

std::exception_ptr WorkerPool::wait() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return std::exchange(failure_, nullptr);
}

void for_each_index(int64_t count, int64_t threads,
                    const std::function<std::function<void(int64_t index)>()>& make_visit) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    try {
      const std::function<void(int64_t)> visit = make_visit();
      for (int64_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
        throw_if_stopped();
        visit(index);
      }
    } catch (...) {
      next = count;  // the others end
      throw;
    }
  };
  WorkerPool helpers;
  for (int64_t i = 1; i < std::min(threads, count) && helpers.add(work); ++i) {
  }
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::exception_ptr of_helpers = helpers.wait();
  if (failure == nullptr) failure = of_helpers;
  if (failure != nullptr) std::rethrow_exception(failure);
}

void require_threads(int64_t count) {
  std::promise<void> all_made;
  const std::shared_future<void> may_end = all_made.get_future().share();
  std::vector<std::thread> threads;
  std::string cause;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the main thread; new threads inherit the mask
  try {
    for (int64_t i = 0; i < count; ++i) threads.emplace_back([may_end] { may_end.wait(); });
  } catch (const std::system_error& error) {
    cause = error.code().message();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const size_t made = threads.size();
  all_made.set_value();
  for (std::thread& thread : threads) thread.join();
  if (cause.empty()) return;
  throw Error(
      ErrorKind::os, format("only {} of {} threads could be started: {}", made, count, cause),
      "raise the limit on processes (ulimit -u, or the pids limit of the container), or use fewer --threads and "
      "--num-workers");
}

}  // namespace stoker::core
