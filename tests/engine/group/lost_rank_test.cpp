// SPDX-License-Identifier: Apache-2.0
// Which rank is lost, from the heartbeats of all of them, at times that the tests make up.
#include "engine/group/rendezvous.h"

#include <gtest/gtest.h>

#include <functional>

namespace stoker::engine {
namespace {

using Doing = Heartbeat::Doing;

constexpr double kTimeout = 8;  // seconds

/// The verdict of rank 0 of 3, which looks four times per second; `heartbeat_of` gives number and doing of ranks 1 and
/// 2 at a time. Returns the verdict and when it fell; empty when none fell within 100 s.
std::pair<std::string, double> verdict(const std::function<Heartbeat(int rank, double now)>& heartbeat_of) {
  LostRankFinder finder(0, 3, kTimeout);
  finder.begin_wait(0);
  for (double now = 0; now < 100; now += 0.25) {
    if (!finder.needs_heartbeats(now)) continue;
    const std::string cause = finder.look(now, {{}, heartbeat_of(1, now), heartbeat_of(2, now)});
    if (!cause.empty()) return {cause, now};
  }
  return {};
}

Heartbeat alive(double now, Doing doing) { return {1 + static_cast<int64_t>(now * 2), doing, 1}; }

TEST(LostRankTest, ARankWithoutASignIsLostBeforeTheTimeoutWhateverItDid) {
  for (const Doing doing : {Doing::waits, Doing::computes, Doing::long_work}) {
    const auto [cause, when] = verdict([&](int rank, double now) {
      return rank == 2 ? Heartbeat{7, doing, 1} : alive(now, Doing::waits);
    });
    EXPECT_EQ(cause, "rank 2 has sent no heartbeat for 4 s");
    EXPECT_LE(when, kTimeout);
  }
}

TEST(LostRankTest, TheRankThatAllWaitForIsLostAfterTheTimeout) {
  const auto [cause, when] =
      verdict([](int rank, double now) { return alive(now, rank == 1 ? Doing::computes : Doing::waits); });
  EXPECT_EQ(cause, "rank 1 is alive, but the others have waited for it for 8 s");
  EXPECT_NEAR(when, kTimeout, 0.3);
}

TEST(LostRankTest, LongWorkIsWaitedForAndTheTimeoutBeginsBehindIt) {
  const auto [cause, when] = verdict([](int rank, double now) {
    return alive(now, rank == 2 ? Doing::waits : now < 50 ? Doing::long_work : Doing::computes);
  });
  EXPECT_EQ(cause.rfind("rank 1 is alive", 0), 0u) << cause;
  EXPECT_NEAR(when, 50 + kTimeout, 0.6);
}

TEST(LostRankTest, WhenAllWaitMessagesAreLost) {
  const auto [cause, when] = verdict([](int, double now) { return alive(now, Doing::waits); });
  EXPECT_EQ(cause.rfind("all ranks have waited for each other", 0), 0u) << cause;
  EXPECT_NEAR(when, 2 * kTimeout, 0.3);
}

TEST(LostRankTest, ASignIsReadAsItWasWritten) {
  const Heartbeat heartbeat = Heartbeat::read(Heartbeat{12, Doing::computes, 4711}.text());
  EXPECT_EQ(heartbeat.number, 12);
  EXPECT_EQ(heartbeat.process, 4711);
  EXPECT_EQ(heartbeat.doing, Doing::computes);
  EXPECT_EQ(Heartbeat::read("").doing, Doing::long_work) << "a rank without a heartbeat yet, starts";
}

}  // namespace
}  // namespace stoker::engine
