// SPDX-License-Identifier: Apache-2.0
#include "engine/group/group.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/error.h"
#include "engine/group/group.h"
#include "tests/engine/group/thread_group.h"

namespace stoker::engine {
namespace {

/// The error that a rank ended with; a bug error where it ended well.
core::Error error_in(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const core::Error& error) {
    return error;
  } catch (const std::exception& error) {
    return {core::ErrorKind::bug, error.what()};
  }
  return {core::ErrorKind::bug, "nothing was thrown"};
}

void expect_all_ended_well(const std::vector<std::exception_ptr>& thrown) {
  for (const std::exception_ptr& one : thrown) EXPECT_FALSE(one) << error_in(one).what();
}

/// The sum of one number per rank, as each rank has it; ranks come `delayed_rank` last.
std::vector<float> summed(const std::vector<float>& numbers, int delayed_rank) {
  std::vector<float> results(numbers.size());
  expect_all_ended_well(run_ranks(static_cast<int>(numbers.size()), [&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    if (group.rank() == delayed_rank) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const at::Tensor number = at::full({1}, numbers[rank]);
    group.sum({number});
    results[rank] = number.item<float>();
  }));
  return results;
}

TEST(GroupTest, ASoloGroupExchangesNothing) {
  SoloGroup group;
  EXPECT_TRUE(group.is_root());
  EXPECT_TRUE(group.is_alone());
  EXPECT_EQ(group.size(), 1);
  const at::Tensor tensor = at::full({2}, 3.0f);
  group.sum({tensor});
  EXPECT_TRUE(at::equal(tensor, at::full({2}, 3.0f)));
  EXPECT_EQ(group.from_root("a"), "a");
  EXPECT_EQ(group.gather("a"), std::vector<std::string>{"a"});
}

TEST(GroupTest, ASumFollowsTheTreeWhoeverComesLast) {
  // The tree: (1e8 - 1e8) + (1 + 1) = 2. From left to right it would be ((1e8 + 1) - 1e8) + 1 = 1.
  for (const int delayed : {0, 1, 3}) {
    EXPECT_EQ(summed({1e8f, 1, -1e8f, 1}, delayed), std::vector<float>(4, 2)) << "rank " << delayed << " comes last";
  }
  // Three ranks count as four: (1e8 - 1e8) + 1.
  EXPECT_EQ(summed({1e8f, 1, -1e8f}, 0), std::vector<float>(3, 1));
  EXPECT_EQ(summed({2, 3}, 1), std::vector<float>(2, 5));
}

TEST(GroupTest, SumsEveryTensorInPlaceAgainAndAgain) {
  std::vector<at::Tensor> ends(2);
  expect_all_ended_well(run_ranks(2, [&](Group& group) {
    const at::Tensor small = at::full({2, 3}, group.rank() + 1.0), count = at::full({}, 10, at::kLong);
    for (int round = 0; round < 50; ++round) group.sum({small, count});
    ends[static_cast<size_t>(group.rank())] = small;
    EXPECT_EQ(count.item<int64_t>(), int64_t{10} << 50);
  }));
  EXPECT_TRUE(at::equal(ends[0], ends[1]));
  EXPECT_EQ(ends[0][1][2].item<float>(), 3.0f * static_cast<float>(int64_t{1} << 49));
}

TEST(GroupTest, BytesGoFromTheRootToAllAndFromAllToAll) {
  expect_all_ended_well(run_ranks(3, [](Group& group) {
    EXPECT_EQ(group.from_root(group.is_root() ? "config" : "another"), "config");
    EXPECT_EQ(group.gather(std::string(1, static_cast<char>('a' + group.rank()))),
              (std::vector<std::string>{"a", "b", "c"}));
  }));
}

TEST(GroupTest, AnErrorOfOneRankReachesThoseThatWaitWithItsMessage) {
  const auto thrown = run_ranks(3, [](Group& group) {
    group.gather("all are here");
    if (group.rank() == 1) throw core::Error(core::ErrorKind::io, "cannot write x: no space left on device");
    group.sum({at::ones({1})});
  });
  EXPECT_EQ(error_in(thrown[1]).kind(), core::ErrorKind::io) << "its own";
  for (const size_t other : {0u, 2u}) {
    EXPECT_STREQ(error_in(thrown[other]).what(), "rank 1 failed: cannot write x: no space left on device");
    EXPECT_EQ(core::exit_code(error_in(thrown[other]).kind()), 76);
  }
}

TEST(GroupTest, AfterAnAbortNothingIsExchanged) {
  const auto thrown = run_ranks(2, [](Group& group) {
    if (group.rank() == 1) {
      EXPECT_TRUE(group.abort("first"));
      EXPECT_FALSE(group.abort("second")) << "not heard";
      return;
    }
    EXPECT_THROW(
        {
          for (;;) group.from_root("x");
        },
        core::Error);
    group.gather("once more");
  });
  EXPECT_FALSE(thrown[1]);
  EXPECT_STREQ(error_in(thrown[0]).what(), "rank 1 failed: first") << "the first cause, each time";
}

TEST(GroupTest, ARankThatEndedIsNotWaitedFor) {
  const auto thrown = run_ranks(2, [](Group& group) {
    if (group.rank() == 0) group.gather("anyone?");
  });
  EXPECT_STREQ(error_in(thrown[0]).what(), "rank 1 has ended");
  EXPECT_EQ(error_in(thrown[0]).kind(), core::ErrorKind::peer_lost);
}

}  // namespace
}  // namespace stoker::engine
