// SPDX-License-Identifier: Apache-2.0
// Golden numbers: scripts/parity/schedule_golden.py with torch 1.13. 40 updates, 4 per epoch, peak 0.4.
#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace stoker::optim {
namespace {

constexpr std::array<int64_t, 16> kGoldenUpdates = {0, 1, 2, 3, 4, 7, 8, 11, 12, 13, 19, 20, 27, 28, 38, 39};

config::ResolvedScheduleOptions schedule_of(config::ScheduleKind kind) {
  config::ResolvedScheduleOptions options;
  options.sched = kind;
  return options;
}

void expect_rates(const config::ResolvedScheduleOptions& options, const std::vector<double>& golden) {
  const Schedule schedule(options, 0.4, 40, 4);
  ASSERT_EQ(golden.size(), kGoldenUpdates.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    EXPECT_NEAR(schedule.at(kGoldenUpdates[i]), golden[i], 1e-11) << "update " << kGoldenUpdates[i];
  }
}

void expect_momenta(const config::ResolvedScheduleOptions& options, const std::vector<double>& golden) {
  const Schedule schedule(options, 0.4, 40, 4);
  ASSERT_EQ(golden.size(), kGoldenUpdates.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    const std::optional<double> momentum = schedule.momentum_at(kGoldenUpdates[i]);
    ASSERT_TRUE(momentum.has_value());
    EXPECT_NEAR(*momentum, golden[i], 1e-11) << "update " << kGoldenUpdates[i];
  }
}

TEST(ScheduleTest, StepEqualsTorchsStepLR) {
  auto options = schedule_of(config::ScheduleKind::step);
  options.decay_epochs = 3;
  options.decay_rate = 0.1;
  expect_rates(options, {0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.04, 0.04, 0.04, 0.04, 0.004, 0.004, 0.0004, 0.0004});
}

TEST(ScheduleTest, MultistepEqualsTorchsMultiStepLR) {
  auto options = schedule_of(config::ScheduleKind::multistep);
  options.decay_milestones = {2, 7};
  options.decay_rate = 0.2;
  expect_rates(options, {0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.016, 0.016, 0.016});
}

TEST(ScheduleTest, CosineEqualsTorchsCosineAnnealingLR) {
  auto options = schedule_of(config::ScheduleKind::cosine);
  options.min_lr = 0.01;
  expect_rates(options, {0.4, 0.399398880078, 0.397599226416, 0.394612134478, 0.390456020678, 0.371264832049,
                         0.362758313903, 0.331642369424, 0.319618124197, 0.30688722012, 0.220299523667, 0.205,
                         0.10311277988, 0.090381875803, 0.0124007735839, 0.010601119922});
}

TEST(ScheduleTest, WarmupEqualsTorchsLinearLRFollowedByTheSchedule) {
  auto options = schedule_of(config::ScheduleKind::cosine);
  options.min_lr = 0.01;
  options.warmup_epochs = 2;
  options.warmup_lr = 0.04;
  expect_rates(options,
               {0.04, 0.085, 0.13, 0.175, 0.22, 0.355, 0.4, 0.391603365468, 0.38515650884, 0.376974646548,
                0.296922363681, 0.279623269311, 0.148394487935, 0.130376730689, 0.0137468703214, 0.0109389782989});
}

TEST(ScheduleTest, CosineRestartsEqualsTorchsCosineAnnealingWarmRestarts) {
  auto options = schedule_of(config::ScheduleKind::cosine_restarts);
  options.min_lr = 0.01;
  options.cycle_epochs = 2;
  options.cycle_mult = 2;
  expect_rates(options, {0.4, 0.38515650884, 0.342885822331, 0.279623269311, 0.205, 0.0248434911603, 0.4,
                         0.367136574399, 0.342885822331, 0.313336195439, 0.0966638045612, 0.0671141776686,
                         0.391603365468, 0.38515650884, 0.243042612793, 0.224113342364});
  options.cycle_epochs = 3;
  options.cycle_mult = 1;
  options.warmup_epochs = 2;
  options.warmup_lr = 0.04;
  expect_rates(options, {0.04, 0.085, 0.13, 0.175, 0.22, 0.355, 0.4, 0.342885822331, 0.3025, 0.255469713795,
                         0.0166444638736, 0.4, 0.154530286205, 0.1075, 0.205, 0.154530286205});
}

TEST(ScheduleTest, EachCycleMayStartLower) {
  auto options = schedule_of(config::ScheduleKind::cosine_restarts);
  options.cycle_epochs = 2;
  options.cycle_decay = 0.5;
  const Schedule schedule(options, 0.4, 40, 4);
  for (const int64_t cycle : {0, 1, 2, 3, 4}) EXPECT_NEAR(schedule.at(8 * cycle), 0.4 * std::pow(0.5, cycle), 1e-12);
}

TEST(ScheduleTest, WarmupStableDecayEqualsTorchsLinearLRConstantLRAndLinearLR) {
  auto options = schedule_of(config::ScheduleKind::wsd);
  options.min_lr = 0.01;
  options.warmup_epochs = 2;
  options.warmup_lr = 0.04;
  options.cooldown = 3;
  expect_rates(options, {0.04, 0.085, 0.13, 0.175, 0.22, 0.355, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.075, 0.0425});
}

TEST(ScheduleTest, PlateauFallsWithEachCutAndNeverBelowMinLr) {
  auto options = schedule_of(config::ScheduleKind::plateau);
  options.min_lr = 0.001;
  options.warmup_epochs = 2;
  const Schedule schedule(options, 0.4, 40, 4);
  EXPECT_NEAR(schedule.at(/*update=*/4, /*cuts=*/0), 0.2, 1e-12) << "in the warm-up";
  for (const auto& [cuts, rate] : {std::pair{0, 0.4}, {1, 0.04}, {2, 0.004}, {3, 0.001}, {4, 0.001}}) {
    EXPECT_NEAR(schedule.at(/*update=*/20, cuts), rate, 1e-12) << cuts;
  }
  EXPECT_FALSE(schedule.counts_for_plateau(7)) << "in the warm-up";
  EXPECT_TRUE(schedule.counts_for_plateau(8));
  EXPECT_FALSE(Schedule(schedule_of(config::ScheduleKind::cosine), 0.4, 40, 4).counts_for_plateau(8));
}

TEST(ScheduleTest, PolynomialEqualsTorchsPolynomialLR) {
  auto options = schedule_of(config::ScheduleKind::polynomial);
  options.poly_power = 2;
  expect_rates(options, {0.4, 0.38025, 0.361, 0.34225, 0.324, 0.27225, 0.256, 0.21025, 0.196, 0.18225, 0.11025, 0.1,
                         0.04225, 0.036, 0.001, 0.00025});
  options.poly_power = 1;
  expect_rates(options, {0.4, 0.39, 0.38, 0.37, 0.36, 0.33, 0.32, 0.29, 0.28, 0.27, 0.21, 0.2, 0.13, 0.12, 0.02, 0.01});
}

TEST(ScheduleTest, OneCycleEqualsTorchsOneCycleLR) {
  auto options = schedule_of(config::ScheduleKind::one_cycle);
  expect_rates(options, {0.016, 0.023777349066, 0.0464793216964, 0.0822667390825, 0.128240317504, 0.287759682496,
                         0.333733260917, 0.4, 0.398742447009, 0.394985602494, 0.32469826158, 0.306406789677,
                         0.155496791225, 0.133945251832, 0.00125915299112, 1.6e-06});
  options.one_cycle_pct_start = 0.1;
  options.one_cycle_div_factor = 10;
  options.one_cycle_final_div_factor = 100;
  expect_rates(options,
               {0.04, 0.13, 0.31, 0.4, 0.399239700679, 0.387950585633, 0.38128029585, 0.353255679735, 0.341479934881,
                0.328628964415, 0.234894905898, 0.217613717401, 0.1003, 0.0855994280171, 0.00116029932127, 0.0004});
}

TEST(ScheduleTest, OneCycleMovesTheMomentumAsTorchsOneCycleLR) {
  auto options = schedule_of(config::ScheduleKind::one_cycle);
  expect_momenta(options, {0.95, 0.947974648681, 0.942062676642, 0.932743036697, 0.92077075065, 0.87922924935,
                           0.867256963303, 0.85, 0.850314389505, 0.851253604391, 0.868825509907, 0.873398396174,
                           0.911126046698, 0.916513953098, 0.949685610495, 0.95});
  options.one_cycle_pct_start = 0.1;
  options.one_cycle_base_momentum = 0.5;
  options.one_cycle_max_momentum = 0.8;
  expect_momenta(
      options, {0.8, 0.725, 0.575, 0.5, 0.500570795286, 0.509046106882, 0.514053831945, 0.535093333532, 0.543933982822,
                0.553581858547, 0.62395277335, 0.636926638588, 0.725, 0.736036465453, 0.799429204714, 0.8});
}

TEST(ScheduleTest, OnlyOneCycleMovesTheMomentumAndOnlyWhenAsked) {
  for (const auto kind : {config::ScheduleKind::constant, config::ScheduleKind::cosine, config::ScheduleKind::step}) {
    EXPECT_FALSE(Schedule(schedule_of(kind), 0.4, 40, 4).momentum_at(7).has_value());
  }
  auto options = schedule_of(config::ScheduleKind::one_cycle);
  options.one_cycle_momentum = false;
  EXPECT_FALSE(Schedule(options, 0.4, 40, 4).momentum_at(7).has_value());
}

TEST(ScheduleTest, OneCycleHasItsOwnWarmup) {
  auto options = schedule_of(config::ScheduleKind::one_cycle);
  const Schedule plain(options, 0.4, 40, 4);
  options.warmup_epochs = 5;
  options.min_lr = 0.1;
  const Schedule with_warmup(options, 0.4, 40, 4);
  for (int64_t update = 0; update < 40; ++update) EXPECT_EQ(plain.at(update), with_warmup.at(update));
}

TEST(ScheduleTest, ConstantIsThePeakAfterWarmup) {
  auto options = schedule_of(config::ScheduleKind::constant);
  options.warmup_epochs = 1;
  const Schedule schedule(options, 0.4, 40, 4);
  EXPECT_EQ(schedule.at(0), 0);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.3);
  for (const int64_t update : {4, 17, 39, 1000}) EXPECT_EQ(schedule.at(update), 0.4);
}

TEST(ScheduleTest, PastTheEndStaysAtTheLastUpdatesRate) {
  for (const auto kind : {config::ScheduleKind::cosine, config::ScheduleKind::polynomial,
                          config::ScheduleKind::one_cycle, config::ScheduleKind::step}) {
    const Schedule schedule(schedule_of(kind), 0.4, 40, 4);
    EXPECT_EQ(schedule.at(40), schedule.at(39));
    EXPECT_EQ(schedule.at(1'000'000), schedule.at(39));
  }
}

TEST(ScheduleTest, StepsNeverGoBelowTheLeastRate) {
  auto options = schedule_of(config::ScheduleKind::step);
  options.decay_epochs = 1;
  options.min_lr = 0.003;
  const Schedule schedule(options, 0.4, 40, 4);
  EXPECT_DOUBLE_EQ(schedule.at(8), 0.004);
  EXPECT_EQ(schedule.at(12), 0.003);
}

TEST(ScheduleTest, MilestonesMayFallInsideAnEpoch) {
  auto options = schedule_of(config::ScheduleKind::multistep);
  options.decay_milestones = {2.5};
  const Schedule schedule(options, 0.4, 40, 4);
  EXPECT_EQ(schedule.at(9), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(10), 0.04);
}

TEST(ScheduleTest, EveryKindIsFiniteForTheShortestRuns) {
  for (const auto kind :
       {config::ScheduleKind::constant, config::ScheduleKind::step, config::ScheduleKind::multistep,
        config::ScheduleKind::cosine, config::ScheduleKind::polynomial, config::ScheduleKind::one_cycle}) {
    for (const double warmup_epochs : {0.0, 1.0, 5.0}) {
      for (const int64_t total : {1, 2, 3, 4, 10}) {
        auto options = schedule_of(kind);
        options.warmup_epochs = warmup_epochs;
        const Schedule schedule(options, 0.4, total, 1);
        for (int64_t update = 0; update <= total; ++update) {
          EXPECT_TRUE(std::isfinite(schedule.at(update))) << total << ' ' << update;
          EXPECT_GE(schedule.at(update), 0);
          EXPECT_LE(schedule.at(update), 0.4);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker::optim
