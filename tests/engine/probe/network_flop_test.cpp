// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/network_flop.h"

#include <gtest/gtest.h>

#include "engine/probe/compute_probe.h"
#include "engine/run/events.h"
#include "tests/engine/probed_run.h"

namespace stoker::engine {
namespace {

using fixtures::ProbedRun;

/// torchvision's documentation counts a multiplication with its addition as one, for 1,000 classes at 224 pixels.
TEST(NetworkFlopTest, AgreesWithTheFiguresOfTorchvision) {
  const struct {
    const char* model;
    double giga_macs;
  } kPublished[] = {{"resnet18", 1.814}, {"resnet50", 4.089}, {"efficientnet_b0", 0.386}, {"convnext_tiny", 4.456}};
  for (const auto& [name, giga_macs] : kPublished) {
    ProbedRun run(name, 224, /*width=*/8);
    EXPECT_NEAR(network_flop(run.learner, run.settings).forward, 2e9 * giga_macs, 0.012e9 * giga_macs + 3e6) << name;
  }
}

TEST(NetworkFlopTest, TheFirstConvolutionNeedsNoGradientOfItsInputAndFrozenWeightsNone) {
  ProbedRun run("resnet18", 64, /*width=*/8);
  const NetworkFlop all = network_flop(run.learner, run.settings);
  const double first = 2.0 * (3 * 7 * 7) * 64 * 32 * 32;  // a 7 x 7 convolution of 3 channels to 64, 32 x 32 pixels
  EXPECT_DOUBLE_EQ(all.training, 3 * all.forward - first);
  for (auto& parameter : run.learner.model->parameters()) parameter.set_requires_grad(false);
  EXPECT_DOUBLE_EQ(network_flop(run.learner, run.settings).training, all.forward);
  EXPECT_EQ(all.grouped, 0);
  ProbedRun depthwise("efficientnet_b0", 64, /*width=*/8);
  EXPECT_GT(network_flop(depthwise.learner, depthwise.settings).grouped, 0);
}

TEST(NetworkFlopTest, AttentionIsCountedOnce) {
  for (const int64_t side : {64, 528}) {  // it takes no others, and so is counted with these
    ProbedRun run("vit_s_16", side, /*width=*/8);
    const auto patches = static_cast<double>(side / 16 * side / 16);
    const double tokens = patches + 1, width = 384;
    const double block = 2 * tokens * width * width * (4 + 8) + 2 * 2 * tokens * tokens * width;
    const double ends = 2 * patches * (16 * 16 * 3) * width + 2 * width * 10;
    EXPECT_DOUBLE_EQ(network_flop(run.learner, run.settings).forward, 12 * block + ends) << side;
  }
}

TEST(NetworkFlopTest, LargeImagesArePredictedFromSmallOnes) {
  ProbedRun small("small_cnn", 256, /*width=*/8), large("small_cnn", 1024, /*width=*/8);
  const double ratio =
      network_flop(large.learner, large.settings).forward / network_flop(small.learner, small.settings).forward;
  EXPECT_DOUBLE_EQ(ratio, 16);
}

TEST(UtilizationTest, IsTheShareOfThePeakAndAbsentWhereEitherIsNotKnown) {
  EXPECT_DOUBLE_EQ(*utilization({1e9, 3e9, 60e9}, 10), 0.5);
  EXPECT_FALSE(utilization({1e9, 0, 60e9}, 10));
  EXPECT_FALSE(utilization({1e9, 3e9, 0}, 10));
}

TEST(UtilizationTest, WhatTrainingReachesIsAPeakToo) {
  ComputeCost cost = {1e9, 3e9, 60e9};
  cost.note_rate(10);
  EXPECT_DOUBLE_EQ(*utilization(cost, 10), 0.5);
  cost.note_rate(25);  // others kept the device busy when its peak was measured
  EXPECT_DOUBLE_EQ(*utilization(cost, 25), 1);
  EXPECT_DOUBLE_EQ(*utilization(cost, 20), 0.8);
  ComputeCost unknown = {1e9, 3e9, 0};
  unknown.note_rate(25);
  EXPECT_FALSE(utilization(unknown, 25));
}

TEST(PeakTest, IsAPositiveNumberWhereThePrecisionIsComputed) {
  EXPECT_GT(peak_flop_per_second("cpu", "float32", /*seconds=*/0.01), 0);
}

}  // namespace
}  // namespace stoker::engine
