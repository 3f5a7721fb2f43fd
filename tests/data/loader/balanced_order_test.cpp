// SPDX-License-Identifier: Apache-2.0
#include "data/loader/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace stoker::data {
namespace {

/// 90, 9 and 1 samples.
std::vector<std::vector<uint32_t>> skewed() {
  std::vector<std::vector<uint32_t>> classes(3);
  for (uint32_t i = 0; i < 100; ++i) classes[i < 90 ? 0 : i < 99 ? 1 : 2].push_back(i);
  return classes;
}

int class_of(uint32_t sample) { return sample < 90 ? 0 : sample < 99 ? 1 : 2; }

TEST(ClassBalancedOrderTest, EveryClassIsSeenEquallyOften) {
  for (uint64_t epoch = 0; epoch < 6; ++epoch) {
    const BalancedOrder order = class_balanced_order(skewed(), 42, epoch);
    ASSERT_EQ(order.samples.size(), 100u);
    std::map<int, int> counts;
    for (const uint32_t sample : order.samples) ++counts[class_of(sample)];
    for (const auto& [k, count] : counts) EXPECT_TRUE(count == 33 || count == 34) << k << ": " << count;
    EXPECT_EQ(counts[static_cast<int>(epoch % 3)], 34) << "the odd one goes round";
  }
}

TEST(ClassBalancedOrderTest, NoSampleComesAgainBeforeItsWholeClassHas) {
  const BalancedOrder order = class_balanced_order(skewed(), 42, 0);
  std::map<uint32_t, int> times;
  std::set<std::pair<uint32_t, uint32_t>> unique;
  for (size_t i = 0; i < order.samples.size(); ++i) {
    ++times[order.samples[i]];
    unique.emplace(order.samples[i], order.rounds[i]);
  }
  EXPECT_EQ(unique.size(), 100u) << "a sample and its round tell repeats apart";
  for (uint32_t sample = 90; sample < 99; ++sample) {
    EXPECT_GE(times[sample], 3) << sample;  // 33 of 9 samples: three rounds and six more
    EXPECT_LE(times[sample], 4) << sample;
  }
  for (uint32_t sample = 0; sample < 90; ++sample) EXPECT_LE(times[sample], 1) << sample;
}

TEST(ClassBalancedOrderTest, IsAFunctionOfSeedAndEpoch) {
  const auto samples = [](uint64_t seed, uint64_t epoch) {
    return class_balanced_order(skewed(), seed, epoch).samples;
  };
  EXPECT_EQ(samples(1, 2), samples(1, 2));
  EXPECT_NE(samples(1, 2), samples(1, 3));
  EXPECT_NE(samples(1, 2), samples(2, 2));
  const std::vector<uint32_t> order = samples(1, 2);
  EXPECT_GT(std::abs(class_of(order[0]) - class_of(order[1])) + std::abs(class_of(order[2]) - class_of(order[3])) +
                std::abs(class_of(order[4]) - class_of(order[5])),
            0)
      << "classes are mixed, not one after the other";
}

TEST(ClassBalancedOrderTest, OverEpochsALargeClassShowsAllItsSamples) {
  std::set<uint32_t> seen;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    for (const uint32_t sample : class_balanced_order(skewed(), 7, epoch).samples) seen.insert(sample);
  }
  EXPECT_EQ(seen.size(), 100u);
}

}  // namespace
}  // namespace stoker::data
