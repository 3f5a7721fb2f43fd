// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "commands/sweep/sweep_parts.h"

namespace stoker::train {
namespace {

/// Values of --over lr, the seeds of each one behind the other.
Sweep sweep_over(const std::vector<std::string>& rates, int64_t seeds) {
  Sweep sweep;
  sweep.seeds = seeds;
  for (const std::string& rate : rates) {
    for (int64_t seed = 0; seed < seeds; ++seed) {
      SweepPart part;
      part.recipe = sweep.recipes.size();
      part.unit = seed;
      sweep.parts.push_back(part);
    }
    sweep.recipes.push_back({{"lr", rate}});
    sweep.recipe_names.push_back("lr=" + rate);
  }
  return sweep;
}

/// A row of sweep.csv begins so.
void expect_order(const SweepTable& table, const std::vector<std::string>& starts) {
  size_t at = 0;
  for (const std::string& start : starts) {
    at = table.csv.find("\n" + start + ",", at);
    ASSERT_NE(at, std::string::npos) << start << " in " << table.csv;
  }
}

TEST(SweepTableTest, OfEqualMeansTheLowerLossStandsFirst) {
  Sweep sweep = sweep_over({"0.1", "0.2", "0.3"}, 3);
  std::vector<std::optional<PartResult>> results;
  for (const auto& [value, loss] : {std::pair(90.1, 3),
                                    {80.2, 3},
                                    {70.7, 3},  //
                                    std::pair(70.7, 2),
                                    {90.1, 2},
                                    {80.2, 2},  // the same mean
                                    std::pair(70.7, 1),
                                    {90.1, 1},
                                    {80.1, 1}}) {  // less
    results.push_back(PartResult{"top1", value, /*lower_is_better=*/false, static_cast<double>(loss)});
  }
  expect_order(table_of(sweep, results, {}), {"1,0.2", "2,0.1", "3,0.3"});
  sweep.halve = 2;
  const std::vector<RungRow> rows = ranked(sweep, 0, {0, 1, 2}, results);
  EXPECT_EQ(rows[0].recipe, 1u);
  EXPECT_EQ(rows[1].recipe, 0u);
  for (std::optional<PartResult>& result : results) result->loss = std::numeric_limits<double>::infinity();
  expect_order(table_of(sweep, results, {}), {"1,0.1", "2,0.2", "3,0.3"});
}

/// Results of --over lr=0.1,0.2 with as many seeds.
std::vector<std::optional<PartResult>> results_of(const std::string& metric, const std::vector<double>& first,
                                                  const std::vector<double>& second) {
  std::vector<std::optional<PartResult>> results;
  for (const std::vector<double>& values : {first, second}) {
    for (const double value : values) results.push_back(PartResult{metric, value, /*lower_is_better=*/false});
  }
  return results;
}

TEST(SweepTableTest, NoIntervalReachesBeyondTheRangeOfItsMetric) {
  const Sweep sweep = sweep_over({"0.1", "0.2"}, 3);
  const std::string csv = table_of(sweep, results_of("top1", {100, 99, 100}, {0, 1, 0}), {}).csv;
  EXPECT_NE(csv.find(",top1,99.6667,98.2324,100,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",top1,0.333333,0,1.76755,99.3333,96.4649,100,"), std::string::npos) << csv;
  const std::string shares = table_of(sweep, results_of("f1", {1, 0.99, 1}, {0.1, 0.9, 0.1}), {}).csv;
  EXPECT_NE(shares.find(",f1,0.996667,0.982324,1,"), std::string::npos) << shares;
  EXPECT_NE(shares.find(",f1,0.366667,0,1,"), std::string::npos) << shares;
}

TEST(SweepTableTest, NobodyIsSentForMoreThanAHundredMoreSeeds) {
  const Sweep sweep = sweep_over({"0.1", "0.2"}, 3);
  const SweepTable close = table_of(sweep, results_of("top1", {90, 92, 91}, {91.9, 90, 91}), {});
  EXPECT_NE(close.text.find("the best two cannot be separated at a sensible cost: they differ by 0.0333"),
            std::string::npos)
      << close.text;
  EXPECT_NE(close.text.find("; 10 more find a difference of "), std::string::npos) << close.text;
  EXPECT_EQ(close.text.find("--seeds"), std::string::npos) << close.text;
  const SweepTable far = table_of(sweep, results_of("top1", {90, 92, 91}, {88, 91.9, 89}), {});
  EXPECT_NE(far.text.find("would separate them with 80 % power"), std::string::npos) << far.text;
  const SweepTable equal = table_of(sweep, results_of("top1", {90, 92, 91}, {90, 92, 91}), {});
  EXPECT_NE(equal.text.find("the same in every run"), std::string::npos) << equal.text;
}

}  // namespace
}  // namespace stoker::train
