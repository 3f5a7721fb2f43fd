// SPDX-License-Identifier: Apache-2.0
// The thread of GlooPeers that watches the meeting while another one trains.
#include <unistd.h>

#include <algorithm>

#include "core/format.h"
#include "engine/group/c10d/gloo_peers.h"

namespace stoker::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kOverdue = 3;  // seconds that a rank has to end by itself once another is lost

}  // namespace

void GlooPeers::watch() {
  double now = 0;  // a clock that stands still while this process is stopped
  double broken_at = -1;
  for (Clock::time_point before = Clock::now(); !ends_; std::this_thread::sleep_for(kWatch)) {
    const Clock::time_point time = Clock::now();
    now += std::min(1.0, std::chrono::duration<double>(time - before).count());
    before = time;
    if (broken_at >= 0) {
      if (now - broken_at < kOverdue || !settings_.when_overdue) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      return settings_.when_overdue(broken_);
    }
    std::string cause = this->cause();
    if (cause.empty()) {
      if (now >= next_sign_) {
        next_sign_ = now + finder_.seconds_between_signs();
        give_sign(waits_            ? SignOfLife::Doing::waits
                  : does_long_work_ ? SignOfLife::Doing::long_work
                                    : SignOfLife::Doing::computes);
      }
      cause = find_lost_rank(now);
      if (!cause.empty()) cause = say(cause);
    }
    if (cause.empty()) continue;
    broken_at = now;
    break_off(cause);
  }
}

void GlooPeers::give_sign(SignOfLife::Doing doing) noexcept {
  try {
    meeting_.give_sign({++signs_, doing, ::getpid()});
  } catch (...) {  // meeting_.trouble()
  }
}

/// Why this rank waits, or will wait, in vain; empty where it does not, or not for long.
std::string GlooPeers::find_lost_rank(double now) {
  for (int other = 0; other < size(); ++other) {
    if (meeting_.is_dead(other)) {
      return core::format("rank {} (process {}) is gone", other, sign_of(other).process);
    }
  }
  const int64_t exchange = waits_ ? exchanges_.load() : -1;
  if (exchange != seen_exchange_) finder_.begin_wait(now);
  seen_exchange_ = exchange;
  if (exchange < 0 || !finder_.wants_signs(now)) return "";
  std::vector<SignOfLife> signs;
  for (int other = 0; other < size(); ++other) signs.push_back(sign_of(other));
  return meeting_.trouble().empty() ? finder_.look(now, signs) : meeting_.trouble();
}

/// Ends the wait of the thread that trains.
void GlooPeers::break_off(const std::string& cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  broken_ = cause;
  for (const auto& work : pending_) work->abort();
}

}  // namespace stoker::engine
