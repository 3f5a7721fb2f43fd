// SPDX-License-Identifier: Apache-2.0
#include "core/system/thread_team.h"

#include "core/error.h"
#include "core/format.h"

namespace stoker::core {

ThreadTeam::ThreadTeam(int64_t members, const std::function<void(int64_t)>& prepare)
    : members_(members), thrown_(static_cast<size_t>(members)) {
  for (int64_t member = 1; member < members; ++member) {
    const bool has_begun = threads_.add([this, prepare, member] {
      if (prepare) prepare(member);
      serve(member);
    });
    if (has_begun) continue;
    {
      const MutexLock lock(mutex_);
      closes_ = true;
    }
    begins_.notify_all();
    threads_.wait();
    throw Error(ErrorKind::os, format("the system gave {} of {} threads", member, members),
                "ask for fewer --lanes, or raise the limit of processes (ulimit -u)");
  }
}

ThreadTeam::~ThreadTeam() {
  {
    const MutexLock lock(mutex_);
    closes_ = true;
  }
  begins_.notify_all();
}

void ThreadTeam::run(const std::function<void(int64_t)>& work) {
  {
    const MutexLock lock(mutex_);
    work_ = &work;
    at_work_ = members_ - 1;
    ++round_;
  }
  begins_.notify_all();
  try {
    work(0);
  } catch (...) {
    thrown_[0] = std::current_exception();
  }
  {
    const MutexLock lock(mutex_);
    while (at_work_ > 0) ends_.wait(mutex_);
    work_ = nullptr;
  }
  std::exception_ptr first;
  for (std::exception_ptr& thrown : thrown_) {
    if (thrown && !first) first = thrown;
    thrown = nullptr;
  }
  if (first) std::rethrow_exception(first);
}

void ThreadTeam::for_each(int64_t count, const std::function<void(int64_t)>& piece) {
  std::atomic<int64_t> next{0};
  run([&](int64_t) {
    try {
      for (int64_t i; (i = next.fetch_add(1)) < count;) piece(i);
    } catch (...) {
      next = count;
      throw;
    }
  });
}

void ThreadTeam::for_each_on(ThreadTeam* team, int64_t count, const std::function<void(int64_t)>& piece) {
  if (team) return team->for_each(count, piece);
  for (int64_t i = 0; i < count; ++i) piece(i);
}

void ThreadTeam::serve(int64_t member) {
  for (int64_t done = 0;; ++done) {
    const std::function<void(int64_t)>* work = nullptr;
    {
      const MutexLock lock(mutex_);
      while (round_ == done && !closes_) begins_.wait(mutex_);
      if (round_ == done) return;
      work = work_;
    }
    try {
      (*work)(member);
    } catch (...) {
      thrown_[static_cast<size_t>(member)] = std::current_exception();
    }
    const MutexLock lock(mutex_);
    if (--at_work_ == 0) ends_.notify_one();
  }
}

}  // namespace stoker::core
