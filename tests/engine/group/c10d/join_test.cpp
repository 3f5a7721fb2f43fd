// SPDX-License-Identifier: Apache-2.0
// c10d carries sums between processes' sockets with the bits of the tree that a group promises, and names lost ranks.
#include "engine/group/c10d/join.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
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
  EXPECT_EQ(link_obstacle({"host 0000:3b:00.0", "host 0000:5e:00.0", "other 0000:3b:00.0"}), "");
  EXPECT_EQ(link_obstacle({"a 1", "a 2", "a 1"}), "ranks 0 and 2 are on the same card");
  EXPECT_EQ(link_obstacle({"a 1", ""}), "rank 1 has no NCCL for its device");
  EXPECT_EQ(link_obstacle({"a 1", kCpuCard}), "rank 1 computes on the CPU");
}

/// Ranks that meet through c10d; threads here, since a group of c10d is no more than sockets.
class C10dTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_join_processes()) GTEST_SKIP() << "built without c10d";
  }
  /// For the ranks of one job of its own; on several machines these are addresses of this one.
  static Joining joining_of(int ranks, bool is_one_machine, double timeout_seconds = 60) {
    static int jobs = 0;
    Joining joining;
    joining.size = ranks;
    joining.job = "test-" + std::to_string(::getpid()) + "-" + std::to_string(++jobs);
    joining.is_one_machine = is_one_machine;
    joining.timeout_seconds = timeout_seconds;
    joining.host = joining.listen = "127.0.0.1";
    if (!is_one_machine) joining.port = free_port();
    return joining;
  }
  /// The error of each rank, as text; empty where it finished.
  static std::vector<std::string> run(const Joining& all, const std::function<void(Group&)>& work) {
    std::vector<std::string> thrown(static_cast<size_t>(all.size));
    run_threads(all.size, [&](int rank) {
      try {
        Joining joining = all;
        joining.rank = rank;
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
  static std::string refusal_of(const Joining& joining) {
    try {
      join_processes(joining);
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::config);
      return error.what();
    }
    return "";
  }

 private:
  static int free_port() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(socket);
    return ntohs(address.sin_port);
  }
};

TEST_F(C10dTest, SumsHaveTheBitsOfTheTree) {
  for (const int ranks : {2, 3, 4}) {
    std::vector<std::vector<at::Tensor>> expected, got(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) expected.push_back(numbers_of(rank, 200'001));
    run_ranks(ranks, [&](Group& group) { group.sum(expected[static_cast<size_t>(group.rank())]); });
    const std::vector<std::string> thrown = run(joining_of(ranks, /*is_one_machine=*/ranks != 3), [&](Group& group) {
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
  for (const bool is_one_machine : {true, false}) {
    const std::vector<std::string> thrown = run(joining_of(3, is_one_machine), [](Group& group) {
      group.gather("all are here");
      if (group.rank() == 1) throw core::Error(core::ErrorKind::io, "cannot write x: no space left on device");
      group.sum({at::ones({1})});
      group.sum({at::ones({1})});
    });
    EXPECT_EQ(thrown[1], "cannot write x: no space left on device");
    EXPECT_EQ(thrown[0], "rank 1 failed: cannot write x: no space left on device");
    EXPECT_EQ(thrown[2], thrown[0]);
  }
}

TEST_F(C10dTest, ARankThatEndedIsNotWaitedFor) {
  for (const bool is_one_machine : {true, false}) {
    const std::vector<std::string> thrown = run(joining_of(2, is_one_machine), [](Group& group) {
      if (group.rank() == 0) group.gather("anyone?");
    });
    EXPECT_EQ(thrown[0], "rank 1 has ended");
  }
}

TEST_F(C10dTest, WhoComesToTheStoreOfOthersIsRefusedWithoutHarmToThem) {
  const Joining joining = joining_of(2, /*is_one_machine=*/false);
  const std::vector<std::string> thrown = run(joining, [&](Group& group) {
    group.gather("all are here");
    if (group.rank() == 1) {
      Joining second = joining, of_another = joining;
      second.rank = of_another.rank = 1;
      of_another.job = "another job";
      EXPECT_EQ(refusal_of(second), "rank 1 of 2 is here already, as process " + std::to_string(::getpid()));
      EXPECT_EQ(refusal_of(of_another).rfind("the ranks of another run meet at 127.0.0.1:", 0), 0u);
    }
    EXPECT_EQ(group.gather("still here").back(), "still here");
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

TEST_F(C10dTest, Rank0ListensAtTheNamedAddressAloneWhereLibTorchCan) {
  const Joining joining = joining_of(2, /*is_one_machine=*/false);
  const std::vector<std::string> thrown = run(joining, [&](Group& group) {
    group.gather("all are here");
    Joining elsewhere = joining;
    elsewhere.rank = 1;
    elsewhere.host = "127.0.0.2";  // as much this machine as the other
    elsewhere.meeting_seconds = 0;
    try {
      if (group.rank() == 1) join_processes(elsewhere);
    } catch (const core::Error& error) {  // config: it came there, and may not
      EXPECT_EQ(error.kind() == core::ErrorKind::peer_lost, can_listen_at_one_address()) << error.what();
    }
    group.gather("still here");
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

/// They wait for a timeout, which a busy machine could reach too early: see discover_suites.cmake.
class C10dTimingTest : public C10dTest {};

TEST_F(C10dTimingTest, ARankThatDoesNotAnswerIsNotWaitedForLongerThanAgreed) {
  const std::vector<std::string> thrown = run(joining_of(2, true, /*timeout_seconds=*/1), [](Group& group) {
    const WorkInStep in_step(group);
    if (group.rank() == 0) group.sum({at::ones({1})});
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
  });
  EXPECT_EQ(thrown[0].rfind("rank 1 is alive, but the others have waited for it for 1", 0), 0u) << thrown[0];
}

TEST_F(C10dTimingTest, LongWorkIsWaitedForHoweverLongItTakes) {
  const std::vector<std::string> thrown = run(joining_of(2, true, /*timeout_seconds=*/1), [](Group& group) {
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
    group.sum({at::ones({1})});
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

}  // namespace
}  // namespace stoker::engine
