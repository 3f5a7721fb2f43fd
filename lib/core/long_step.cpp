// SPDX-License-Identifier: Apache-2.0
#include "core/long_step.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <system_error>

#include "core/format.h"
#include "core/log.h"

namespace stoker::core {

namespace {

bool is_new_here(const std::string& explanation) {
  static std::mutex mutex;
  static std::set<std::string> explained;
  const std::lock_guard<std::mutex> lock(mutex);
  return explained.insert(explanation).second;
}

}  // namespace

LongStep::LongStep(std::string name, const LongStepPace& pace, std::string explanation)
    : name_(std::move(name)), explanation_(std::move(explanation)), pace_(pace) {
  sigset_t held, before;
  sigfillset(&held);
  ::pthread_sigmask(SIG_SETMASK, &held, &before);  // signals are for the main thread; new threads inherit the mask
  try {
    thread_ = std::thread([this] { follow(); });
  } catch (const std::system_error&) {  // no thread can be started: the step works without
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LongStep::~LongStep() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  if (is_live_) show_live_line("");
}

void LongStep::set_done(std::string done) {
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ = std::move(done);
}

void LongStep::follow() {
  using Seconds = std::chrono::duration<double>;
  const auto begin = std::chrono::steady_clock::now();
  const double between = ::isatty(STDOUT_FILENO) || ::isatty(STDERR_FILENO) ? pace_.screen : pace_.lines;
  double next_line = between;
  std::unique_lock<std::mutex> lock(mutex_);
  double wait = pace_.first;
  while (!changed_.wait_for(lock, Seconds(wait), [this] { return has_ended_; })) {
    wait = pace_.live;
    const double seconds = Seconds(std::chrono::steady_clock::now() - begin).count();
    const std::string line = format("{}{}{}, {}", name_, done_.empty() ? "" : ": ", done_, duration_text(seconds));
    lock.unlock();
    if (!explanation_.empty() && is_new_here(explanation_)) log_info("{}", explanation_);
    is_live_ = show_live_line(line);
    if (!is_live_ && seconds >= next_line) {
      log_info("{}", line);
      next_line = seconds + between;
    }
    lock.lock();
  }
}

}  // namespace stoker::core
