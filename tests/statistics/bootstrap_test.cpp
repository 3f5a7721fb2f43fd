// SPDX-License-Identifier: Apache-2.0
#include "statistics/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "core/format.h"
#include "simulated.h"
#include "statistics/certainty.h"
#include "statistics/weighted_metrics.h"

namespace stoker::statistics {
namespace {

/// The mean of 0, 1, ..., n - 1.
Statistic mean_of_indices() {
  return [](const std::vector<uint32_t>& weights, double* figures) {
    double sum = 0, all = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      sum += static_cast<double>(i) * weights[i];
      all += weights[i];
    }
    figures[0] = sum / all;
  };
}

TEST(NormalTest, QuantilesAreThoseOfTables) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-15);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-10);
  for (const double p : {0.001, 0.02, 0.3, 0.8, 0.999}) EXPECT_NEAR(normal_below(normal_quantile(p)), p, 1e-14);
}

TEST(BootstrapTest, IsTheSameForAnyNumberOfThreadsAndOtherForAnotherSeed) {
  BootstrapSettings settings;
  settings.resamples = 200;
  const Interval one = bootstrap(50, 1, mean_of_indices(), settings).front();
  settings.threads = 4;
  const Interval four = bootstrap(50, 1, mean_of_indices(), settings).front();
  EXPECT_EQ(one.low, four.low);
  EXPECT_EQ(one.high, four.high);
  settings.seed = 1;
  EXPECT_NE(bootstrap(50, 1, mean_of_indices(), settings).front().low, one.low);
}

TEST(BootstrapTest, TheIntervalOfAMeanIsTwoStandardErrors) {
  BootstrapSettings settings;
  settings.resamples = 4000;
  const Interval interval = bootstrap(1000, 1, mean_of_indices(), settings).front();
  const double error = 1000 / std::sqrt(12) / std::sqrt(1000);
  EXPECT_NEAR(interval.low, 499.5 - 1.96 * error, 0.1 * error);
  EXPECT_NEAR(interval.high, 499.5 + 1.96 * error, 0.1 * error);
}

TEST(BootstrapTest, UndefinedFiguresAreLeftOut) {
  EXPECT_TRUE(std::isnan(bca_interval(1, {NAN, NAN}, {}, 0.95).low));
  EXPECT_TRUE(std::isnan(bca_interval(NAN, {1, 2, 3}, {}, 0.95).low));
  const Interval some = bca_interval(2, {1, NAN, 2, 3, NAN}, {2, 2, NAN}, 0.95);
  EXPECT_GE(some.low, 1);
  EXPECT_LE(some.high, 3);
  const Interval point = bca_interval(2, {2, 2, 2}, {2, 2}, 0.95);
  EXPECT_EQ(point.low, 2);
  EXPECT_EQ(point.high, 2);
}

TEST(BootstrapTest, AFigureThatLiesHighAmongItsResamplesMovesTheIntervalUp) {
  std::vector<double> resampled;
  for (int i = 0; i <= 1000; ++i) resampled.push_back(i);
  const Interval fair = bca_interval(500, resampled, {}, 0.95), high = bca_interval(700, resampled, {}, 0.95);
  EXPECT_NEAR(fair.low, 25, 1);
  EXPECT_NEAR(fair.high, 975, 1);
  EXPECT_GT(high.low, fair.low + 20);
  EXPECT_GT(high.high, fair.high);
}

TEST(WilsonTest, HoldsWhereAllAreHits) {
  const Interval all = wilson_interval(50, 50, 0.95);
  EXPECT_NEAR(all.low, 0.92865, 1e-5);
  EXPECT_EQ(all.high, 1);
  const Interval some = wilson_interval(45, 50, 0.95);
  EXPECT_NEAR(some.low, 0.786398, 1e-6);
  EXPECT_NEAR(some.high, 0.956524, 1e-6);
}

class CoverageTest : public ::testing::TestWithParam<config::TaskKind> {};

/// 1,000 take a minute of a CPU for all tasks; STOKER_EVALUATIONS sets fewer.
int evaluations() {
  const char* const asked = std::getenv("STOKER_EVALUATIONS");
  return asked == nullptr ? 1000 : std::stoi(asked);
}

/// The truth is what the network is worth: its figure on very many samples.
TEST_P(CoverageTest, IntervalsAt95PercentHoldTheTruth93To97TimesOfAHundred) {
  const int count = evaluations();
  // Where there are few evaluations: three standard deviations of the share.
  const double slack = std::max(0.02, 3 * std::sqrt(0.95 * 0.05 / count));
  constexpr int64_t kSamples = 400;
  const EvaluatedSamples very_many = simulated(GetParam(), 200'000, /*evaluation=*/1'000'000);
  const auto metrics = make_weighted_metrics(very_many);
  std::vector<double> truth(metrics->names().size());
  metrics->values(std::vector<uint32_t>(very_many.samples.size(), 1), truth.data());
  std::vector<int> covered(truth.size());
  BootstrapSettings settings;
  settings.resamples = 1000;
  settings.threads = 4;
  for (int evaluation = 0; evaluation < count; ++evaluation) {
    settings.seed = static_cast<uint64_t>(evaluation);
    const Certainty certainty = certainty_of(simulated(GetParam(), kSamples, settings.seed), settings);
    for (size_t k = 0; k < truth.size(); ++k) {
      const Interval& interval = certainty.metrics[k].interval;
      covered[k] += interval.low <= truth[k] && truth[k] <= interval.high ? 1 : 0;
    }
  }
  for (size_t k = 0; k < truth.size(); ++k) {
    const double share = static_cast<double>(covered[k]) / count;
    RecordProperty(metrics->names()[k].name, std::to_string(share));
    EXPECT_GE(share, 0.95 - slack) << metrics->names()[k].name;
    EXPECT_LE(share, 0.95 + slack) << metrics->names()[k].name;
  }
}
TEST(SignTest, IsTheBinomialTestOnBothSides) {
  EXPECT_DOUBLE_EQ(sign_test(0, 0), 1);
  EXPECT_DOUBLE_EQ(sign_test(1, 1), 1);
  EXPECT_NEAR(sign_test(3, 0), 0.25, 1e-12);
  EXPECT_NEAR(sign_test(0, 6), 0.03125, 1e-12);
  EXPECT_NEAR(sign_test(13, 4), 0.04904174804687500, 1e-12) << "scipy.stats.binomtest(4, 17)";
  EXPECT_NEAR(sign_test(16, 6), 0.052478790283203125, 1e-12);
  EXPECT_NEAR(sign_test(60'000, 61'000), 0.0040796, 1e-7);
}

/// Networks that are worth the same and differ on few images get a winner in at most 5 % of all comparisons, and a true
/// difference lies in its interval. Of 200 images on which `differing` differ in the predicted class.
TEST(PairsCoverageTest, FewImagesThatDifferNameAWinnerAtMost5TimesOfAHundred) {
  constexpr int64_t kSamples = 200;
  const int count = 2 * evaluations();
  BootstrapSettings settings;
  settings.resamples = 400;
  settings.threads = 4;
  for (const int64_t differing : {2, 3, 4, 5, 6, 8, 12, 19, 20, 30, 40}) {
    std::vector<int> won(6);
    int held = 0;  // intervals of top1 that hold a difference of half of the images that differ
    for (int round = 0; round < count; ++round) {
      settings.seed = static_cast<uint64_t>(round);
      EvaluatedSamples first = simulated(config::TaskKind::multiclass, kSamples, settings.seed);
      first.predicted_class = first.truth_class;
      EvaluatedSamples second = first, worse = first;
      core::Rng rng(7, core::RngPurpose::probe, static_cast<uint64_t>(differing), settings.seed);
      for (int64_t k = 0; k < kSamples; ++k) {
        const auto i = static_cast<size_t>(k);
        const auto wrong = static_cast<int32_t>((first.truth_class[i] + 1) % 6);
        if (k < differing) (rng.chance(0.5) ? first : second).predicted_class[i] = wrong;
        if (rng.chance(static_cast<double>(differing) / kSamples)) worse.predicted_class[i] = wrong;
      }
      const Comparison equal = compare(first, second, settings);
      for (size_t k = 0; k < won.size(); ++k) won[k] += equal.metrics[k].winner() != 0 ? 1 : 0;
      EvaluatedSamples flawless = worse;
      flawless.predicted_class = flawless.truth_class;
      const Interval interval = compare(flawless, worse, settings).metrics[1].interval;
      const double truth = 100 * static_cast<double>(differing) / kSamples;
      held += interval.low <= truth && truth <= interval.high ? 1 : 0;
    }
    const double slack = 3 * std::sqrt(0.05 * 0.95 / count);
    for (size_t k = 0; k < won.size(); ++k) {
      EXPECT_LE(static_cast<double>(won[k]) / count, 0.05 + slack) << "metric " << k << ", " << differing << " differ";
    }
    EXPECT_GE(static_cast<double>(held) / count, 0.95 - slack) << differing << " differ";
    RecordProperty("differ_" + std::to_string(differing),
                   core::format("top1 won {} held {} of {}", won[1], held, count));
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, CoverageTest,
                         ::testing::Values(config::TaskKind::multiclass, config::TaskKind::binary,
                                           config::TaskKind::multilabel, config::TaskKind::regression));

}  // namespace
}  // namespace stoker::statistics
