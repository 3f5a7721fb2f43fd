// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/fault_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stoker::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(SpikeTest, IsAMultipleOfTheMedianBefore) {
  const std::vector<double> series = {1, 1.2, 0.8, 1, 1.1, 0.9, 10, 1};
  EXPECT_DOUBLE_EQ(spike(series, 6, 3), 10);
  EXPECT_EQ(spike(series, 6, 20), 0);
  EXPECT_EQ(spike(series, 7, 3), 0);
}

TEST(SpikeTest, IsFarOutsideOfTheSpread) {
  const std::vector<double> noisy = {1, 5, 1, 4, 2, 7, 1, 6, 2, 9};
  EXPECT_EQ(spike(noisy, 9, 3), 0);
}

TEST(SpikeTest, TheHighStartOfARunIsNoneAndAnEarlyOneIs) {
  const std::vector<double> falling = {9, 8, 2, 1.1, 1, 0.9, 1, 1, 1}, early = {1, 1.1, 50, 1.2, 1, 1, 1.1, 1, 1};
  for (size_t i = 0; i < falling.size(); ++i) EXPECT_EQ(spike(falling, i, 3), 0) << i;
  EXPECT_GT(spike(early, 2, 3), 40);
}

TEST(SpikeTest, OfAShortSeriesIsFarOut) {
  EXPECT_GT(spike({1, 1e5, 1e9, std::nan("")}, 1, 3), 1e4);
  EXPECT_EQ(spike({1, 20, 1}, 1, 3), 0);
}

TEST(EpisodeTest, LastsAsLongAsNumbersAreHighAgainstWhatWasBeforeIt) {
  std::vector<double> series(10, 1);
  for (int i = 0; i < 60; ++i) series.push_back(i == 30 ? 100 : 20);  // longer than what a spike is compared with
  series.insert(series.end(), 5, 1);
  const std::vector<Episode> episodes = episodes_of(series, 3);
  ASSERT_EQ(episodes.size(), 1u);
  EXPECT_EQ(episodes[0].begin, 10u);
  EXPECT_EQ(episodes[0].end, 69u);
  EXPECT_EQ(episodes[0].peak, 40u);
  EXPECT_DOUBLE_EQ(episodes[0].most, 100);
}

TEST(EpisodeTest, HasItsPeakInTheFirstNumberThatIsNotFinite) {
  const std::vector<Episode> episodes = episodes_of({1, 1, 1, 1, 1, 30, std::nan(""), 50, kInfinity}, 3);
  ASSERT_EQ(episodes.size(), 1u);
  EXPECT_EQ(episodes[0].begin, 5u);
  EXPECT_EQ(episodes[0].peak, 6u);
  EXPECT_EQ(episodes[0].end, 8u);
  EXPECT_EQ(episodes_of({kInfinity}, 3).size(), 1u);
  EXPECT_TRUE(episodes_of({}, 3).empty());
}

TEST(EpisodeTest, QuietOnesInBetweenEndItWhenThereAreThree) {
  const std::vector<double> two = {1, 1, 1, 1, 1, 20, 1, 1, 20}, three = {1, 1, 1, 1, 1, 20, 1, 1, 1, 20};
  EXPECT_EQ(episodes_of(two, 3).size(), 1u);
  EXPECT_EQ(episodes_of(three, 3).size(), 2u);
}

}  // namespace
}  // namespace stoker::train
