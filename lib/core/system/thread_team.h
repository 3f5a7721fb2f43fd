// SPDX-License-Identifier: Apache-2.0
// Threads that stay, and do one piece of work together whenever they are asked to.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "core/system/mutex.h"
#include "core/system/worker_pool.h"

namespace stoker::core {

/// One owner, whose thread is member 0 of the team while run() is under way.
class ThreadTeam {
 public:
  /// `prepare` is called once by each other member, on its thread. Throws Error{os} when the system gives fewer
  /// threads.
  explicit ThreadTeam(int64_t members, const std::function<void(int64_t member)>& prepare = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int64_t size() const { return members_; }

  /// Calls work(member) once on each member's thread at the same time; returns when all have returned. What the first
  /// of them by number has thrown is thrown again then. Work that asks for more work of the same team is not possible.
  void run(const std::function<void(int64_t member)>& work);
  /// Calls piece(0) ... piece(count - 1), each once, on whichever member is free. After one has thrown, no further one
  /// begins.
  void for_each(int64_t count, const std::function<void(int64_t piece)>& piece);
  /// for_each() where there may be no team: then the calling thread does all pieces, in order.
  static void for_each_on(ThreadTeam* team, int64_t count, const std::function<void(int64_t piece)>& piece);

 private:
  void serve(int64_t member);

  const int64_t members_;
  Mutex mutex_;
  Condition begins_, ends_;
  const std::function<void(int64_t)>* work_ STOKER_GUARDED_BY(mutex_) = nullptr;
  int64_t round_ STOKER_GUARDED_BY(mutex_) = 0;    ///< of run()
  int64_t at_work_ STOKER_GUARDED_BY(mutex_) = 0;  ///< members that have not returned
  bool closes_ STOKER_GUARDED_BY(mutex_) = false;
  std::vector<std::exception_ptr> thrown_;  ///< by member; each writes its own
  WorkerPool threads_;                      ///< declared last: they use the rest
};

}  // namespace stoker::core
