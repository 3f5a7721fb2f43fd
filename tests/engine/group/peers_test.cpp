// SPDX-License-Identifier: Apache-2.0
// Sums over peers are bit-identical to the tree that a group promises.
#include "engine/group/peers.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "tests/engine/group/c10d/post_peers.h"
#include "tests/engine/group/thread_group.h"

namespace stoker::engine {
namespace {

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

}  // namespace
}  // namespace stoker::engine
