// SPDX-License-Identifier: Apache-2.0
// c10d carries sums between processes' sockets with the bits of the tree that a group promises, and names lost ranks.
#include "engine/group/c10d/join.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "engine/group/c10d/device_peers.h"
#include "tests/engine/group/c10d/post_peers.h"
#include "tests/engine/group/thread_group.h"

namespace stoker::engine {
namespace {

TEST(DevicePeersTest, RanksExchangeBetweenDevicesWhereEachHasACardOfItsOwn) {
  EXPECT_EQ(why_not_between({"host 0000:3b:00.0", "host 0000:5e:00.0", "other 0000:3b:00.0"}), "");
  EXPECT_EQ(why_not_between({"a 1", "a 2", "a 1"}), "ranks 0 and 2 are on the same card");
  EXPECT_EQ(why_not_between({"a 1", ""}), "rank 1 has no NCCL for its device");
  EXPECT_EQ(why_not_between({"a 1", kCpuCard}), "rank 1 computes on the CPU");
}

/// Ranks that meet through c10d; threads here, since a group of c10d is no more than sockets.
class C10dTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_join_processes()) GTEST_SKIP() << "built without c10d";
  }
  /// What each rank threw, as text; empty where it came to its end.
  std::vector<std::string> run(int ranks, const std::function<void(Group&)>& work, double timeout_seconds = 60) {
    static int jobs = 0;
    const std::string job = "test-" + std::to_string(::getpid()) + "-" + std::to_string(++jobs);
    std::vector<std::string> thrown(static_cast<size_t>(ranks));
    run_threads(ranks, [&](int rank) {
      try {
        Joining joining;
        joining.rank = rank;
        joining.size = ranks;
        joining.job = job;
        joining.timeout_seconds = timeout_seconds;
        const std::unique_ptr<Group> group = join_processes(joining);
        try {
          work(*group);
        } catch (const std::exception& error) {
          group->abort(error.what());
          throw;
        }
      } catch (const std::exception& error) {
        thrown[static_cast<size_t>(rank)] = error.what();
      }
    });
    return thrown;
  }
};

TEST_F(C10dTest, SumsHaveTheBitsOfTheTree) {
  for (const int ranks : {2, 3, 4}) {
    std::vector<std::vector<at::Tensor>> expected, got(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) expected.push_back(numbers_of(rank, 200'001));
    run_ranks(ranks, [&](Group& group) { group.sum(expected[static_cast<size_t>(group.rank())]); });
    const std::vector<std::string> thrown = run(ranks, [&](Group& group) {
      const auto rank = static_cast<size_t>(group.rank());
      got[rank] = numbers_of(group.rank(), 200'001);
      EXPECT_TRUE(group.sums_on(at::Device(at::kCPU)));
      group.sum(got[rank]);
      EXPECT_EQ(group.from_root(group.is_root() ? "a" : "b"), "a");
      EXPECT_EQ(group.gather(std::to_string(rank)).back(), std::to_string(ranks - 1));
    });
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(ranks)));
    for (const std::vector<at::Tensor>& of_rank : got) {
      for (size_t i = 0; i < of_rank.size(); ++i) EXPECT_TRUE(at::equal(of_rank[i], expected[0][i])) << ranks;
    }
  }
}

TEST_F(C10dTest, AnErrorOfOneRankReachesThoseThatWaitWithItsMessage) {
  const std::vector<std::string> thrown = run(3, [](Group& group) {
    group.gather("all are here");
    if (group.rank() == 1) throw core::Error(core::ErrorKind::io, "cannot write x: no space left on device");
    group.sum({at::ones({1})});
    group.sum({at::ones({1})});
  });
  EXPECT_EQ(thrown[1], "cannot write x: no space left on device");
  EXPECT_EQ(thrown[0], "rank 1 failed: cannot write x: no space left on device");
  EXPECT_EQ(thrown[2], thrown[0]);
}

TEST_F(C10dTest, ARankThatEndedIsNotWaitedFor) {
  const std::vector<std::string> thrown = run(2, [](Group& group) {
    if (group.rank() == 0) group.gather("anyone?");
  });
  EXPECT_EQ(thrown[0], "rank 1 has ended");
}

/// They wait for a timeout, which a busy machine could reach too early: see discover_suites.cmake.
class C10dTimingTest : public C10dTest {};

TEST_F(C10dTimingTest, ARankThatDoesNotAnswerIsNotWaitedForLongerThanAgreed) {
  const std::vector<std::string> thrown = run(
      2,
      [](Group& group) {
        const WorkInStep in_step(&group);
        if (group.rank() == 0) group.sum({at::ones({1})});
        if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
      },
      /*timeout_seconds=*/1);
  EXPECT_EQ(thrown[0].rfind("rank 1 is alive, but the others have waited for it for 1", 0), 0u) << thrown[0];
}

TEST_F(C10dTimingTest, LongWorkIsWaitedForHoweverLongItTakes) {
  const std::vector<std::string> thrown = run(
      2,
      [](Group& group) {
        if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
        group.sum({at::ones({1})});
      },
      /*timeout_seconds=*/1);
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

}  // namespace
}  // namespace stoker::engine
