// SPDX-License-Identifier: Apache-2.0
#include "statistics/paired.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"

namespace stoker::statistics {
namespace {

TEST(StudentTest, QuantilesAreThoseOfTables) {
  const double table[][3] = {{0.975, 1, 12.7062047361747},  {0.975, 2, 4.30265272974946}, {0.975, 5, 2.57058183563631},
                             {0.995, 30, 2.74999565356706}, {0.8, 3, 0.978472312363014},  {0.5, 4, 0}};
  for (const auto& [p, freedom, t] : table) {
    EXPECT_NEAR(student_quantile(p, freedom), t, 1e-10) << freedom;
    EXPECT_NEAR(student_quantile(1 - p, freedom), -t, 1e-10);
    EXPECT_NEAR(student_below(t, freedom), p, 1e-12);
  }
  EXPECT_NEAR(student_quantile(0.975, 1e7), 1.959964, 1e-5);
}

TEST(RunMeanTest, IntervalAndPValueAreThoseOfThePairedTTest) {
  const RunMean difference = difference_of_runs({3, 1, 4, 2, 6, NAN}, {1, 1, 2, 1, 4, 7}, 0);
  EXPECT_EQ(difference.runs, 5);
  EXPECT_DOUBLE_EQ(difference.mean, 1.4);
  EXPECT_NEAR(difference.p_value, 2 * student_below(-1.4 / (std::sqrt(0.8) / std::sqrt(5)), 4), 1e-12);
  EXPECT_NEAR(difference.interval.low, 1.4 - 2.7764451052 * 0.4, 1e-9);
  EXPECT_GT(difference_of_runs({3, 1, 4, 2, 6}, {1, 1, 2, 1, 4}, 0.25).p_value, difference.p_value);
}

TEST(RunMeanTest, FewRunsAndRunsThatAgreeProveNothing) {
  EXPECT_TRUE(std::isnan(mean_of_runs({NAN}, 0).mean));
  EXPECT_TRUE(std::isnan(mean_of_runs({2}, 0).interval.low));
  EXPECT_EQ(mean_of_runs({2}, 0).p_value, 1);
  EXPECT_EQ(mean_of_runs({0, 0, 0}, 0).p_value, 1);
  EXPECT_EQ(mean_of_runs({0.5, 0.5}, 0).p_value, 0.5);
  EXPECT_LT(mean_of_runs(std::vector<double>(6, 0.5), 0).p_value, 0.05);
}

TEST(RunMeanTest, TheCorrectionIsHolms) {
  const std::vector<double> corrected = corrected_for_number({0.01, 0.04, 0.03, 0.9});
  EXPECT_DOUBLE_EQ(corrected[0], 0.04);
  EXPECT_DOUBLE_EQ(corrected[1], 0.09);
  EXPECT_DOUBLE_EQ(corrected[2], 0.09);
  EXPECT_DOUBLE_EQ(corrected[3], 0.9);
}

/// Runs of two recipes on the same seeds: the seed moves both, and each by itself.
RunMean drawn_difference(uint64_t trial, int64_t runs, double apart, uint64_t part = 0) {
  core::Rng rng(trial, core::RngPurpose::bootstrap, 7, part);
  std::vector<double> first, second;
  for (int64_t i = 0; i < runs; ++i) {
    const double seed = 2 * rng.normal();
    first.push_back(90 + seed + 0.8 * rng.normal() + apart);
    second.push_back(90 + seed + 0.8 * rng.normal());
  }
  return difference_of_runs(first, second, 0);
}

constexpr int kTrials = 2000;

TEST(SimulatedSweepTest, EqualRecipesHaveAWinnerInFivePercent) {
  for (const int64_t runs : {2, 3, 5, 10}) {
    int winners = 0;
    for (uint64_t trial = 0; trial < kTrials; ++trial)
      winners += drawn_difference(trial, runs, 0).p_value < 0.05 ? 1 : 0;
    EXPECT_LE(winners, kTrials * 6 / 100) << runs << " runs";
    EXPECT_GE(winners, kTrials * 4 / 100) << runs << " runs";
  }
}

TEST(SimulatedSweepTest, OfSeveralEqualRecipesAnyWinsInFivePercent) {
  int winners = 0;
  for (uint64_t trial = 0; trial < kTrials; ++trial) {
    core::Rng rng(trial, core::RngPurpose::bootstrap, 8, 0);
    std::vector<std::vector<double>> recipes(5, std::vector<double>(4));
    for (auto& recipe : recipes) {
      for (double& run : recipe) run = rng.normal();
    }
    std::vector<double> p_values;
    for (size_t a = 0; a < recipes.size(); ++a) {
      for (size_t b = 0; b < a; ++b) p_values.push_back(difference_of_runs(recipes[a], recipes[b], 0).p_value);
    }
    bool is_named = false;
    for (const double p_value : corrected_for_number(p_values)) is_named |= p_value < 0.05;
    winners += is_named ? 1 : 0;
  }
  EXPECT_LE(winners, kTrials * 6 / 100);
}

TEST(SimulatedSweepTest, ThePromisedNumberOfRunsFindsADifferenceOfOnePointInEightOfTen) {
  for (const int64_t tried : {3, 5, 10}) {
    int found = 0;
    constexpr int kPilots = 1000;
    for (uint64_t trial = 0; trial < kPilots; ++trial) {
      RunMean pilot = drawn_difference(trial, tried, 1, 1);
      pilot.mean = 1;  // the difference is known, the deviation is not
      const int64_t runs = runs_to_find(pilot, {});
      ASSERT_GE(runs, 2);
      found += drawn_difference(trial, runs, 1, 2).p_value < 0.05 ? 1 : 0;
    }
    EXPECT_NEAR(found, kPilots * 0.8, kPilots * 0.04) << tried << " runs tried";
  }
  RunMean equal = drawn_difference(1, 5, 0);
  for (const int64_t runs : {3, 13, 100}) {
    equal.mean = difference_to_find(equal, runs, {});
    EXPECT_EQ(runs_to_find(equal, {}), runs) << "the least difference that they find";
  }
  PowerSettings few;
  few.most = 100;
  EXPECT_EQ(runs_to_find(equal, few), 100);
  few.most = 99;
  EXPECT_EQ(runs_to_find(equal, few), 0);
  equal.mean = 0;
  EXPECT_EQ(runs_to_find(equal, {}), 0);
  PowerSettings folds;
  folds.overlap = 1;  // of two folds: what they share does not shrink with the number of runs
  equal.mean = 0.1;
  EXPECT_EQ(runs_to_find(equal, folds), 0);
}

}  // namespace
}  // namespace stoker::statistics
