// SPDX-License-Identifier: Apache-2.0
// The calls of ranks to NCCL and their use of its results, shown with a double of it: no GPU is needed, and NCCL
// itself is not tested.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/error.h"
#include "engine/group/c10d/device_peers.h"
#include "tests/engine/group/c10d/fake_nccl.h"
#include "tests/engine/group/c10d/post_peers.h"
#include "tests/engine/group/thread_group.h"

namespace stoker::engine {
namespace {

const at::Device kDevice(at::kCPU);

class NcclTest : public testing::Test {
 protected:
  void SetUp() override { fake_nccl::reset(); }
  void TearDown() override { fake_nccl::reset(); }

  /// The error of each rank, as text; empty where it finished.
  static std::vector<std::string> run(int ranks, Post& post, const std::function<void(PostPeers&)>& work) {
    std::vector<std::string> thrown(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        PostPeers peers(post, rank, ranks);
        try {
          work(peers);
        } catch (const core::Error& error) {
          thrown[static_cast<size_t>(rank)] = std::to_string(core::exit_code(error.kind())) + " " + error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return thrown;
  }
};

TEST_F(NcclTest, SumsHaveTheBitsOfTheTree) {
  fake_nccl::set_slow_starts(20);
  for (const int ranks : {2, 3, 4, 8}) {
    std::vector<std::vector<at::Tensor>> expected, got(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) expected.push_back(numbers_of(rank, 10'007));
    run_ranks(ranks, [&](Group& group) { group.sum(expected[static_cast<size_t>(group.rank())]); });
    Post post;
    const auto thrown = run(ranks, post, [&](PostPeers& peers) {
      const auto devices = connect_devices(peers, kDevice);
      std::vector<at::Tensor>& own = got[static_cast<size_t>(peers.rank())];
      own = numbers_of(peers.rank(), 10'007);
      // The double moves nothing before it is asked, so that what the tree adds in between needs a wait each.
      class Stepwise : public Peers {
       public:
        explicit Stepwise(DevicePeers& devices) : devices_(devices) {}
        int rank() const override { return devices_.rank(); }
        int size() const override { return devices_.size(); }
        void exchange(int peer, const void* out, size_t out_bytes, void* in, size_t in_bytes) override {
          devices_.exchange(peer, out, out_bytes, in, in_bytes);
          devices_.wait();
        }

       private:
        DevicePeers& devices_;
      } stepwise(*devices);
      sum_over_peers(stepwise, own);
      EXPECT_FALSE(fake_nccl::is_in_group());
    });
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(ranks)));
    for (const std::vector<at::Tensor>& of_rank : got) {
      for (size_t i = 0; i < of_rank.size(); ++i) EXPECT_TRUE(at::equal(of_rank[i], expected[0][i])) << ranks;
    }
  }
}

TEST_F(NcclTest, TheFastExchangeIsOneCallThatCostsWhatARingCosts) {
  Post post;
  const auto thrown = run(4, post, [&](PostPeers& peers) {
    const auto devices = connect_devices(peers, kDevice);
    const at::Tensor numbers = at::full({1024}, peers.rank() + 1, at::kFloat);
    devices->all_reduce(numbers);
    devices->wait();
    EXPECT_TRUE(at::equal(numbers, at::full({1024}, 10, at::kFloat)));
    EXPECT_EQ(devices->bytes_sent(), 2 * 3 * 1024 * 4 / 4);
    EXPECT_THROW(devices->all_reduce(at::ones({1}, at::kBool)), core::Error);
  });
  EXPECT_EQ(thrown, std::vector<std::string>(4));
}

TEST_F(NcclTest, ALostRankEndsTheWaitForItAndTheWorkOnTheDevice) {
  Post post;
  const auto thrown = run(2, post, [&](PostPeers& peers) {
    const auto devices = connect_devices(peers, kDevice);
    if (peers.rank() == 1) {
      post.break_off("rank 1 was killed");
      return;
    }
    char byte = 0;
    devices->exchange(1, nullptr, 0, &byte, 1);
    const int before = fake_nccl::aborted();
    EXPECT_THROW(devices->wait(), core::Error);
    EXPECT_GT(fake_nccl::aborted(), before);
    devices->wait();
  });
  EXPECT_EQ(thrown, (std::vector<std::string>{"76 rank 1 was killed", ""}));
}

TEST_F(NcclTest, ARankThatDoesNotComeToConnectIsNotWaitedForWhenItIsLost) {
  Post post;
  const auto thrown = run(2, post, [&](PostPeers& peers) {
    if (peers.rank() == 0) {
      connect_devices(peers, kDevice);
    } else {
      from_root_of_peers(peers, "");  // takes the id, and dies once the other one waits for it
      while (fake_nccl::connecting() == 0) std::this_thread::yield();
      post.break_off("rank 1 was killed");
    }
  });
  EXPECT_EQ(thrown, (std::vector<std::string>{"76 rank 1 was killed", ""}));
  EXPECT_EQ(fake_nccl::aborted(), 1);
}

TEST_F(NcclTest, AnErrorOfNcclIsReportedUnlessAnotherRankHasTheCause) {
  for (const std::string cause : {"", "rank 1 failed: disk full"}) {
    fake_nccl::reset();
    fake_nccl::set_failure(3, ncclSystemError);
    Post post;
    const auto thrown = run(2, post, [&](PostPeers& peers) {
      const auto devices = connect_devices(peers, kDevice);
      char out = 'a', in = 0;
      devices->exchange(1 - peers.rank(), &out, 1, &in, 1);
      devices->wait();
      EXPECT_EQ(in, 'a');
      from_root_of_peers(peers, "both have done it");
      if (peers.rank() == 1) return;
      if (!cause.empty()) post.break_off(cause);
      try {
        devices->exchange(1, &out, 1, &in, 1);
      } catch (...) {
        EXPECT_FALSE(fake_nccl::is_in_group());
        EXPECT_EQ(peers.last_words, cause.empty() ? 1 : 0);
        throw;
      }
    });
    EXPECT_EQ(thrown[0], cause.empty()
                             ? "71 the GPUs cannot exchange, NCCL reports: unhandled system error (cable pulled)"
                             : "76 rank 1 failed: disk full");
  }
}

}  // namespace
}  // namespace stoker::engine
