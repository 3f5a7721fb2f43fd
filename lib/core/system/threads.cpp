// SPDX-License-Identifier: Apache-2.0
#include "core/system/threads.h"

#include <pthread.h>
#include <signal.h>

#include <future>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/format.h"

namespace stoker::core {

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
