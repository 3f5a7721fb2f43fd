// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/training_speed.h"

#include <gtest/gtest.h>

#include <map>

namespace stoker::engine {
namespace {

/// Ways with given seconds: `of_image` for each image, more in a way's first pass and in the first of a turn.
class SimulatedPasses {
 public:
  SimulatedPasses(std::vector<double> of_image, double first, double turn) : of_image_(std::move(of_image)) {
    passes.ways = of_image_.size();
    passes.turns_disturb = turn > 0;
    passes.take = [this](size_t way, int64_t images) { images_[way] = images; };
    passes.begin_turn = [this, turn](size_t way) {
      if (way != in_turn_) disturbed_ = turn;
      in_turn_ = way;
    };
    passes.pass = [this, first](size_t way) {
      EXPECT_EQ(way, in_turn_);
      const double more = disturbed_ + (taken_[way]++ == 0 ? first : 0);
      disturbed_ = 0;
      const double seconds = of_image_[way] * static_cast<double>(images_[way]) + more;
      spent += seconds;
      return seconds;
    };
    passes.can_pass = [this](size_t way) { return of_image_[way] > 0 && passes.pass(way) > 0; };
  }
  int taken(size_t way) const { return taken_.count(way) > 0 ? taken_.at(way) : 0; }
  int64_t images(size_t way) const { return images_.at(way); }

  ComparedPasses passes;
  double spent = 0;

 private:
  const std::vector<double> of_image_;
  std::map<size_t, int> taken_;
  std::map<size_t, int64_t> images_;
  size_t in_turn_ = 0;
  double disturbed_ = 0;
};

TEST(ComparedPassesTest, WhatAFirstPassMakesDoesNotDecide) {
  for (const double of_image : {0.001, 0.05, 0.5}) {  // seconds: short passes, long ones, and very long ones
    SimulatedPasses simulated({of_image, 1.2 * of_image}, /*first=*/10, /*turn=*/0);
    const std::vector<double> seconds = compared_seconds(simulated.passes, /*batch_size=*/16, /*least_seconds=*/0.1);
    EXPECT_NEAR(seconds[1] / seconds[0], 1.2, 1e-9) << of_image;
  }
}

TEST(ComparedPassesTest, ThreadsThatAreMadeAnewForATurnDoNotDecide) {
  SimulatedPasses simulated({0.01, 0.015, 0.02}, /*first=*/1, /*turn=*/3);
  const std::vector<double> seconds = compared_seconds(simulated.passes, 16, 0.1);
  EXPECT_NEAR(seconds[1] / seconds[0], 1.5, 1e-9);
  EXPECT_NEAR(seconds[2] / seconds[0], 2, 1e-9);
}

TEST(ComparedPassesTest, ImagesAreDoubledUntilAPassTakesSomeTimeAndAreTheSameForEachWay) {
  SimulatedPasses simulated({0.03, 0.02}, 0, 0);
  compared_seconds(simulated.passes, /*batch_size=*/64, 0.1);
  EXPECT_EQ(simulated.images(0), 8);
  EXPECT_EQ(simulated.images(1), 8);
  SimulatedPasses quick({1e-6, 1e-6}, 0, 0);
  compared_seconds(quick.passes, /*batch_size=*/20, 1e-9);
  EXPECT_EQ(quick.images(0), 20);
  SimulatedPasses two({0.03, 0.02}, 0, 0);
  compared_seconds(two.passes, /*batch_size=*/1, 0.1);
  EXPECT_EQ(two.images(0), 2) << "of one image batch norm may not be able to train";
}

TEST(ComparedPassesTest, NumbersOfImagesThatAreSurelyTooFewAreLeftOut) {
  SimulatedPasses simulated({0.001, 0.001}, 0, 0);
  compared_seconds(simulated.passes, /*batch_size=*/128, 1e-9);
  EXPECT_EQ(simulated.images(0), 128);
  EXPECT_EQ(simulated.taken(0), 2 + 2 + 1) << "2 images, 128, of which the second counts, and the second round";
  SimulatedPasses fixed({0.0001, 0.0001}, 0, 0);  // most of a pass is the same for any number of images
  const auto of_images = fixed.passes.pass;
  fixed.passes.pass = [&](size_t way) { return 0.01 + of_images(way); };
  compared_seconds(fixed.passes, /*batch_size=*/4096, 1e-9);
  EXPECT_EQ(fixed.images(0), 2048) << "as doubling finds it";
}

/// How many passes of the second way are counted.
int counted_passes(double gain, bool takes_median) {
  SimulatedPasses simulated({0.01, 0.01 / gain}, 0, 0);
  simulated.passes.gain_that_counts = 1.2;
  simulated.passes.takes_median = takes_median;
  compared_seconds(simulated.passes, /*batch_size=*/2, 1e-9);
  return simulated.taken(1) - 1;
}

TEST(ComparedPassesTest, ASecondRoundIsForWhatTheFirstLeftOpen) {
  EXPECT_EQ(counted_passes(/*gain=*/0.9, /*takes_median=*/false), 1);
  EXPECT_EQ(counted_passes(1.0, false), 2);
  EXPECT_EQ(counted_passes(1.4, false), 2);
  EXPECT_EQ(counted_passes(1.6, false), 1);
  EXPECT_EQ(counted_passes(0.9, true), 1);
  EXPECT_EQ(counted_passes(1.6, true), 2) << "a neighbour may have held up the first way";
}

TEST(ComparedPassesTest, OfVeryLongPassesFewAreTakenAndAWayThatIsFarSlowerIsTheLast) {
  SimulatedPasses simulated({1, 2, 4, 8}, 0, 0);  // seconds an image with 8, 4, 2 and 1 threads
  const std::vector<double> seconds = compared_seconds(simulated.passes, 16, 0.1);
  EXPECT_EQ(seconds, (std::vector<double>{2, 4, 4, 4}));
  EXPECT_EQ(simulated.taken(1), 2);
  EXPECT_EQ(simulated.taken(2) + simulated.taken(3), 0);
  SimulatedPasses beside({8, 1, 2, 4}, 0, 0);  // a neighbour holds a CPU that all threads wait for
  EXPECT_EQ(compared_seconds(beside.passes, 16, 0.1), (std::vector<double>{16, 2, 4, 4}));
}

TEST(ComparedPassesTest, AWayThatCannotBeComputedTakesNoTime) {
  for (const double of_image : {0.001, 0.5}) {
    SimulatedPasses simulated({of_image, 0, 2 * of_image}, 0, 0);
    const std::vector<double> seconds = compared_seconds(simulated.passes, 16, 0.01);
    EXPECT_EQ(seconds[1], 0);
    EXPECT_NEAR(seconds[2] / seconds[0], 2, 1e-9);
  }
}

}  // namespace
}  // namespace stoker::engine
