// SPDX-License-Identifier: Apache-2.0
#include "data/loader/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/rng.h"

namespace stoker::data {
namespace {

std::vector<uint32_t> in_order(std::vector<uint32_t> order) {
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<uint32_t> numbers_to(uint32_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

TEST(EpochOrderTest, WindowZeroIsTheFullShuffle) {
  EXPECT_EQ(shuffled_order({40, 100}, 0, 7, 3), core::shuffled_indices(100, 7, 3));
}

TEST(EpochOrderTest, EveryWindowGivesEverySampleOnce) {
  for (const int64_t window : {1, 2, 7, 99, 100, 1000}) {
    EXPECT_EQ(in_order(shuffled_order({10, 10, 37, 100}, window, 1, 2)), numbers_to(100)) << window;
  }
}

TEST(EpochOrderTest, WindowOneVisitsRunsWholeInRandomOrder) {
  const std::vector<int64_t> ends = {25, 50, 75, 100};
  std::set<uint32_t> first;
  for (uint64_t epoch = 0; epoch < 50; ++epoch) {
    const std::vector<uint32_t> order = shuffled_order(ends, 1, 1, epoch);
    for (size_t i = 0; i < order.size(); ++i) {
      if (i % 25 != 0) {
        EXPECT_EQ(order[i], order[i - 1] + 1);
      }
    }
    first.insert(order[0]);
  }
  EXPECT_EQ(first, (std::set<uint32_t>{0, 25, 50, 75}));
}

TEST(EpochOrderTest, SamplesStayInsideTheirWindow) {
  const std::vector<uint32_t> order = shuffled_order({100}, 10, 3, 0);
  EXPECT_NE(order, numbers_to(100));
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i] / 10, i / 10);
}

TEST(EpochOrderTest, ItIsAFunctionOfSeedAndEpoch) {
  const std::vector<int64_t> ends = {30, 60, 100};
  EXPECT_EQ(shuffled_order(ends, 16, 1, 2), shuffled_order(ends, 16, 1, 2));
  EXPECT_NE(shuffled_order(ends, 16, 1, 2), shuffled_order(ends, 16, 1, 3));
  EXPECT_NE(shuffled_order(ends, 16, 1, 2), shuffled_order(ends, 16, 2, 2));
}

// The order of a run must not change between releases: a resume continues inside an epoch.
TEST(EpochOrderTest, TheOrderIsPinned) {
  EXPECT_EQ(shuffled_order({4, 8, 12}, 5, 42, 1), (std::vector<uint32_t>{6, 0, 7, 4, 5, 8, 3, 2, 1, 9, 10, 11}));
}

}  // namespace
}  // namespace stoker::data
