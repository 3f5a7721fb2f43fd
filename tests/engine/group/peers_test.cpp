// SPDX-License-Identifier: Apache-2.0
// Sums over peers have the bits of the tree that a group promises, and c10d carries them between processes' sockets.
#include "engine/group/peers.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/error.h"
#include "engine/group/c10d/device_peers.h"
#include "engine/group/c10d/join.h"
#include "tests/engine/group/post_peers.h"
#include "tests/engine/group/thread_group.h"

namespace stoker::engine {
namespace {

void run_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
}

TEST(PeersTest, SumsHaveTheBitsOfTheTreeForAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 8}) {
    for (const int64_t count : {1, 4096, 10'007}) {
      std::vector<std::vector<at::Tensor>> expected, got(static_cast<size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank) expected.push_back(numbers_of(rank, count));
      run_ranks(ranks, [&](Group& group) { group.sum(expected[static_cast<size_t>(group.rank())]); });
      Post post;
      run_threads(ranks, [&](int rank) {
        PostPeers peers(post, rank, ranks);
        got[static_cast<size_t>(rank)] = numbers_of(rank, count);
        sum_over_peers(peers, got[static_cast<size_t>(rank)]);
      });
      for (const std::vector<at::Tensor>& of_rank : got) {
        for (size_t i = 0; i < of_rank.size(); ++i) {
          EXPECT_TRUE(at::equal(of_rank[i], expected[0][i]))
              << ranks << " ranks, " << count << " numbers, tensor " << i;
        }
      }
    }
  }
}

TEST(PeersTest, ManyNumbersCostWhatARingCosts) {
  for (const int ranks : {2, 4, 8}) {
    constexpr int64_t kNumbers = 1 << 16;
    Post post;
    run_threads(ranks, [&](int rank) {
      PostPeers peers(post, rank, ranks);
      sum_over_peers(peers, {at::ones({kNumbers})});
    });
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(post.sent_bytes[rank], 2 * (ranks - 1) * kNumbers * sizeof(float) / static_cast<size_t>(ranks));
    }
  }
}

TEST(PeersTest, BytesGoFromTheRootToAllAndFromAllToAll) {
  for (const int ranks : {1, 2, 3, 4}) {
    Post post;
    run_threads(ranks, [&](int rank) {
      PostPeers peers(post, rank, ranks);
      EXPECT_EQ(from_root_of_peers(peers, rank == 0 ? "config" : "another"), "config");
      std::vector<std::string> expected;
      for (int other = 0; other < ranks; ++other) expected.push_back(std::string(static_cast<size_t>(other), 'x'));
      EXPECT_EQ(gather_from_peers(peers, std::string(static_cast<size_t>(rank), 'x')), expected);
    });
  }
}

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
    const std::unique_ptr<MeetingPoint> point = open_meeting_point();
    std::vector<std::string> thrown(static_cast<size_t>(ranks));
    run_threads(ranks, [&](int rank) {
      try {
        Joining joining;
        joining.rank = rank;
        joining.size = ranks;
        joining.port = point->port();
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

TEST_F(C10dTest, ARankThatDoesNotAnswerIsNotWaitedForLongerThanAgreed) {
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

TEST_F(C10dTest, LongWorkIsWaitedForHoweverLongItTakes) {
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
