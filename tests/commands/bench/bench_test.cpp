// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_rounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/resolution.h"
#include "data/open_datasets.h"
#include "tests/data/made_data.h"

namespace stoker::train {
namespace {

constexpr BenchEffort kOneEpoch{/*rounds=*/1, /*seconds_per_round=*/0};

config::ResolvedOptions options_for(int64_t img_size) {
  config::Options given;
  given.data.img_size = config::ImageSize{img_size, img_size};
  given.loader.batch_size = 4;
  given.loader.num_workers = 1;
  config::Facts facts;
  facts.machine.cpus = 2;
  facts.machine.ram_bytes = facts.machine.ram_available_bytes = int64_t{8} << 30;
  facts.data = {/*num_classes=*/2, /*channels=*/3, /*median_height=*/64, /*median_width=*/64, /*train_images=*/7};
  return config::resolve(given, facts).options;
}

TEST(BenchTest, SpreadIsTheMedianAndTheEnds) {
  const Spread odd = spread_of({3, 1, 9}), even = spread_of({4, 1, 2, 9});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.lowest, 1);
  EXPECT_EQ(odd.highest, 9);
  EXPECT_EQ(even.median, 3);
  EXPECT_EQ(spread_of({}).median, 0);
}

TEST(BenchTest, TextHasTheUnitBehindTheMedian) {
  EXPECT_EQ(text_of({2, 1, 3}, "images/s"), "2.0 images/s (1.0 to 3.0)");
}

TEST(BenchTest, ARateIsSuggestedWhereTheCurveHasALowestPlace) {
  const std::vector<std::vector<double>> clear = {{9.0, 9.2, 9.1}, {8.0, 8.3, 8.1}, {3.0, 3.3, 3.2},
                                                  {3.1, 3.2, 3.3}, {6.0, 6.6, 6.1}, {NAN, 9.0, NAN}};
  constexpr double kSameAnswer = 10;
  const RateChoice choice = choose_rate(clear, kSameAnswer);
  EXPECT_EQ(choice.obstacle, "");
  EXPECT_EQ(choice.best, 2u);
  EXPECT_EQ(choice.low, 2u);
  EXPECT_EQ(choice.high, 3u);
  const struct {
    std::vector<std::vector<double>> losses;
    std::string obstacle;
  } cases[] = {{{{2.0, 2.1}, {2.1, 2.0}, {1.9, 2.2}}, "flat"},
               {{{2.3, 2.3, 2.3}, {2.3, 2.3, 2.3}}, "flat"},
               {{{2.1, 2.0, 2.1}, {3.1, 3.0, 3.2}, {4.3, 4.1, 4.2}}, "lowest rate is the best"},
               {{{9.0, 9.2, 9.1}, {8.0, 8.3, 8.1}, {3.0, 3.3, 3.2}}, "highest rate"},
               {{{NAN, NAN}, {NAN, NAN}}, "not finite"},
               {{{9.0, 9.1, 9.2},
                 {3.0, 5.0, 4.0},
                 {3.1, 4.9, 4.1},
                 {3.2, 4.8, 3.9},
                 {3.3, 4.7, 4.2},
                 {3.4, 4.6, 4.1},
                 {3.5, 4.5, 4.0},
                 {3.6, 4.5, 4.1},
                 {3.6, 4.6, 4.0},
                 {9.0, 9.2, 9.1}},
                "noisy"}};
  for (const auto& [losses, obstacle] : cases) {
    EXPECT_NE(choose_rate(losses, kSameAnswer).obstacle.find(obstacle), std::string::npos)
        << obstacle << ": " << choose_rate(losses, kSameAnswer).obstacle;
  }
}

TEST(BenchTest, NoRateIsSuggestedWhereNothingWasLearned) {
  const std::vector<std::vector<double>> losses = {
      {2.71, 2.74, 2.72}, {2.51, 2.53, 2.52}, {2.36, 2.37, 2.36}, {2.52, 2.50, 2.53}, {2.99, 3.09, 3.01}};
  EXPECT_EQ(choose_rate(losses, /*same_answer=*/2.6).obstacle, "") << "the curve itself is clear";
  for (const double same_answer : {2.303, 2.4}) {
    const RateChoice choice = choose_rate(losses, same_answer);
    EXPECT_NE(choice.obstacle.find("nothing was learned"), std::string::npos) << choice.obstacle;
    EXPECT_TRUE(choice.needs_updates);
  }
  const RateChoice wide = choose_rate({{2.7, 2.7}, {2.0, 2.02}, {1.9, 3.1}}, 2.303);
  EXPECT_EQ(wide.obstacle, "");
  EXPECT_EQ(wide.high, 1u) << "2.5 is worse than always the same answer, however it scatters";
  const RateChoice by_chance = choose_rate({{2.7, 2.7}, {0.9, 2.9}, {2.8, 2.8}}, 2.303);
  EXPECT_NE(by_chance.obstacle.find("nothing was learned"), std::string::npos) << by_chance.obstacle;
}

/// Two classes of brightness, one three times as frequent: a network learns them in some updates.
class RateTestBench : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 16; ++i) {
      const std::vector<uint8_t> pixels(size_t{24} * 24 * 3, i % 4 == 0 ? 220 : 30);
      folder_.write((i % 4 == 0 ? "train/a/image" : "train/b/image") + std::to_string(i) + ".jpg",
                    data::jpeg_of(pixels, 24, 24));
    }
    options_ = options_for(16);
    options_.model.model = "small_cnn";
    options_.device.threads = 1;
    options_.precision.amp = false;
    where_.data_dir = folder_.path();
  }

  BenchResult result(int64_t updates) const {
    RateTest test;
    test.seeds = 2;
    test.updates = updates;
    test.rates = {1e-6, 1e-3, 1e-2, 3e-2};
    return bench_rates(options_, data::open_split(where_, "train"), test);
  }

  const data::TempFolder folder_;
  config::ResolvedOptions options_;
  config::DataOptions where_;
};

TEST_F(RateTestBench, TheSameAnswerForEveryImageHasTheEntropyOfTheClasses) {
  options_.train.label_smoothing = 0;
  const double entropy = -0.25 * std::log(0.25) - 0.75 * std::log(0.75);
  EXPECT_NEAR(result(2).figures["same_answer_loss"].get<double>(), entropy, 1e-4);
}

TEST_F(RateTestBench, LossesAreThoseAtTheEndOfTheRunsSchedule) {
  options_.train.epochs = 3;
  options_.schedule.sched = config::ScheduleKind::constant;
  const core::Json constant = result(12).figures["rates"];
  options_.schedule.sched = config::ScheduleKind::cosine;
  const core::Json cosine = result(12).figures["rates"];
  EXPECT_NE(constant, cosine);
  EXPECT_EQ(cosine, result(12).figures["rates"]) << "the same answer each time";
}

TEST(BenchTest, LoaderFiguresAreThoseOfTheFiles) {
  const data::TempFolder folder;
  for (int i = 0; i < 7; ++i) {
    folder.write("image" + std::to_string(i) + ".jpg", data::jpeg_of(data::pattern_pixels(80, 60, 3), 80, 60));
  }
  const BenchResult result = bench_loader(options_for(32), data::open_loose_images(folder.path(), true), kOneEpoch);
  const core::Json& figures = result.figures;
  EXPECT_EQ(figures["images"], 7);
  EXPECT_EQ(figures["cores"], 1);
  EXPECT_EQ(figures["batch_size"], 4);
  EXPECT_GT(result.images_per_second.median, 0);
  EXPECT_EQ(figures["images_per_second_per_core"], result.images_per_second.median);
  const double rate = figures["images_per_second"]["median"],
               decode = figures["pure_decode_images_per_second"]["median"];
  EXPECT_NEAR(figures["decode_efficiency_percent"]["median"].get<double>(), 100 * rate / decode, 1e-6);
  EXPECT_GT(figures["cpu_seconds_per_1000_images"]["median"], 0);
  EXPECT_GT(figures["first_batch_milliseconds"]["median"], 0);
  EXPECT_GE(figures["gap_milliseconds"]["p99"], figures["gap_milliseconds"]["p50"]);
  EXPECT_GT(figures["peak_rss_bytes"], 1e6);
  for (const char* const stage : {"read", "decode", "resize"}) {
    EXPECT_GT(figures["microseconds_per_sample"][stage], 0) << stage;
  }
}

TEST(BenchTest, AblationTurnsOffWhatIsUsedAndComparesWithTheWhole) {
  const data::TempFolder folder;
  for (int i = 0; i < 8; ++i) {
    folder.write((i % 2 == 0 ? "train/a/image" : "train/b/image") + std::to_string(i) + ".jpg",
                 data::jpeg_of(data::pattern_pixels(40, 30, 3), 40, 30));
  }
  config::ResolvedOptions options = options_for(32);
  options.device.threads = 1;
  options.precision.amp = false;
  config::DataOptions where;
  where.data_dir = folder.path();
  const std::shared_ptr<const data::Source> source = data::open_split(where, "train");
  const BenchResult result = bench_ablate(options, {source, source}, kOneEpoch);
  std::vector<std::string> turned_off;
  for (const core::Json& part : result.figures["parts"]) {
    turned_off.push_back(part["option"]);
    EXPECT_GT(part["factor"]["median"], 0);
    EXPECT_GT(part["images_per_second"]["median"], 0);
  }
  EXPECT_EQ(turned_off, (std::vector<std::string>{"--no-channels-last", "", "--num-workers 0", "--prefetch-factor 1"}))
      << "neither mixed precision, threads, a cache nor a second worker is used";
  options.loader.num_workers = 2;
  EXPECT_EQ(bench_ablate(options, {source, source}, kOneEpoch).figures["parts"].size(), turned_off.size() + 1);
}

}  // namespace
}  // namespace stoker::train
