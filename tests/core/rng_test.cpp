// SPDX-License-Identifier: Apache-2.0
#include "core/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace stoker::core {
namespace {

TEST(PhiloxTest, EqualsTheKnownAnswersOfRandom123) {
  // From Random123's kat_vectors, philox4x32 with 10 rounds.
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RngTest, SameKeyGivesSameStream) {
  Rng a(42, RngPurpose::augment, 3, 17), b(42, RngPurpose::augment, 3, 17);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(RngTest, EveryPartOfTheKeyMatters) {
  std::set<uint32_t> first;
  for (uint64_t seed : {1, 2}) {
    for (auto purpose : {RngPurpose::shuffle, RngPurpose::augment}) {
      for (uint64_t epoch : {0, 1}) {
        for (uint64_t sample : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 33}) {
          first.insert(Rng(seed, purpose, epoch, sample).next());
        }
      }
    }
  }
  EXPECT_EQ(first.size(), 24u);
}

TEST(RngTest, UniformStaysInItsHalfOpenRangeAndHasTheRightMean) {
  Rng rng(1, RngPurpose::augment, 0, 0);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double value = rng.uniform(2, 5);
    ASSERT_GE(value, 2);
    ASSERT_LT(value, 5);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 3.5, 0.01);
}

TEST(RngTest, BelowIsUniform) {
  Rng rng(1, RngPurpose::augment, 0, 0);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts[rng.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
}

TEST(RngTest, NormalHasMeanZeroAndDeviationOne) {
  Rng rng(1, RngPurpose::augment, 0, 0);
  double sum = 0, squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double value = rng.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 100000, 0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / 100000), 1, 0.02);
}

TEST(ShuffleTest, IsAPermutationThatDependsOnSeedAndEpoch) {
  const auto order = shuffled_indices(1000, 42, 0);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(order, all);
  EXPECT_EQ(order, shuffled_indices(1000, 42, 0));
  EXPECT_NE(order, shuffled_indices(1000, 42, 1));
  EXPECT_NE(order, shuffled_indices(1000, 43, 0));
}

TEST(ShuffleTest, KeepsItsOrderBetweenReleases) {
  // Golden: a changed order would make every older checkpoint resume with other batches.
  EXPECT_EQ(shuffled_indices(8, 42, 0), (std::vector<uint32_t>{2, 1, 6, 3, 7, 5, 0, 4}));
}

}  // namespace
}  // namespace stoker::core
