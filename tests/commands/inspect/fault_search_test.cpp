// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/fault_search.h"

#include <gtest/gtest.h>

#include <limits>

#include "quiet_run.h"

namespace stoker::train {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(FaultSearchTest, FindsNothingInAQuietRun) {
  EXPECT_EQ(find_fault(quiet_run(30)).kind, Blame::Kind::nothing);
  EXPECT_EQ(find_fault({}).kind, Blame::Kind::nothing);
}

TEST(FaultSearchTest, AnImageThatIsNotFiniteIsNamed) {
  std::vector<WatchedUpdate> updates = quiet_run(20);
  updates[19].loss = updates[19].gradient_norm = kNaN;
  for (SampleRecord& sample : updates[19].samples) sample.loss = kNaN;  // by batch norm
  updates[19].samples[3].is_finite = false;
  const Blame blame = find_fault(updates);
  EXPECT_EQ(blame.kind, Blame::Kind::divergence);
  EXPECT_EQ(blame.began.update, 20);
  ASSERT_EQ(blame.samples.size(), 1u);
  EXPECT_EQ(blame.samples[0].sample, 203);
}

TEST(FaultSearchTest, ADivergenceBeganWithTheJumpOfTheLearningRateBeforeIt) {
  std::vector<WatchedUpdate> updates = quiet_run(20);
  updates[15].rate_before = 0.1;
  updates[15].learning_rate = 100;
  for (size_t i = 16; i < 20; ++i) {
    updates[i].loss = 50;
    updates[i].gradient_norm = 1e6;
  }
  updates[19].loss = kNaN;
  const Blame blame = find_fault(updates);
  EXPECT_EQ(blame.began.update, 16);
  EXPECT_EQ(blame.not_finite_at, 20);
  EXPECT_NE(blame.cause.find("learning rate went from 0.1 to 100"), std::string::npos) << blame.cause;
}

TEST(FaultSearchTest, ASampleThatCostsFarMoreIsASpikeWithItsLayer) {
  std::vector<WatchedUpdate> updates = quiet_run(20);
  updates[9].samples[5].loss = 500;
  updates[9].loss = 63;
  updates[9].gradient_norm = 90;
  updates[9].layers = {{"stem", 5}, {"head", 89}};
  const Blame blame = find_fault(updates);
  EXPECT_EQ(blame.kind, Blame::Kind::spike);
  EXPECT_EQ(blame.began.update, 10);
  EXPECT_EQ(blame.not_finite_at, 0);
  ASSERT_EQ(blame.samples.size(), 1u);
  EXPECT_EQ(blame.samples[0].sample, 105);
  EXPECT_EQ(blame.layer, "head");
}

TEST(FaultSearchTest, AnImageOfHugeNumbersIsNamedWhateverBatchNormMakesOfTheOthers) {
  std::vector<WatchedUpdate> updates = quiet_run(20);
  updates[19].loss = kNaN;
  for (SampleRecord& sample : updates[19].samples) {
    sample.loss = kNaN;
    sample.largest = 3;
  }
  updates[19].samples[6].largest = 1e20;
  const Blame blame = find_fault(updates);
  ASSERT_EQ(blame.samples.size(), 1u);
  EXPECT_EQ(blame.samples[0].sample, 206);
  EXPECT_NE(blame.cause.find("1e+20"), std::string::npos) << blame.cause;
}

TEST(FaultSearchTest, AJumpOfTheLearningRateIsTheCauseOfASpikeThatComesLater) {
  std::vector<WatchedUpdate> updates = quiet_run(20);
  updates[9].rate_before = 0.1;
  updates[9].learning_rate = 10;
  for (size_t i = 16; i < 20; ++i) updates[i].loss = 50;
  EXPECT_EQ(find_fault(updates).began.update, 10);
}

TEST(FaultSearchTest, ACheckpointThatWasChangedIsTheCauseOfWhatFollowsUnlessItIsRounding) {
  for (const double by : {1e30, 1e-6}) {
    std::vector<WatchedUpdate> updates = quiet_run(20);
    updates[14].checkpoint = "run/checkpoints/step-00000015";
    updates[14].changed_tensor = "optimizer: stem.conv.weight.momentum";
    updates[14].changed_by = by;
    updates[15].loss = kNaN;
    const Blame blame = find_fault(updates);
    EXPECT_EQ(blame.began.update, by > 1 ? 15 : 16);
    EXPECT_EQ(blame.cause.find("step-00000015 was changed") != std::string::npos, by > 1);
    EXPECT_EQ(blame.layer, "stem");
  }
}

TEST(FaultSearchTest, AStageWhoseOutputIsNotFiniteIsTheLayer) {
  std::vector<WatchedUpdate> updates = quiet_run(12);
  updates[11].stage = "layer3";
  updates[11].loss = kNaN;
  const Blame blame = find_fault(updates);
  EXPECT_EQ(blame.began.update, 12);
  EXPECT_EQ(blame.layer, "layer3");
}

TEST(FaultSearchTest, GradientsByLayerAreTheRootOfTheirSquares) {
  const std::vector<GradientRecord> layers =
      by_layer({{"a.weight", 3}, {"a.bias", 4}, {"b.c.weight", 2}, {"token", 1}});
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0].name, "a");
  EXPECT_DOUBLE_EQ(layers[0].norm, 5);
  EXPECT_EQ(layers[1].name, "b.c");
  EXPECT_EQ(layers[2].name, "token");
}

}  // namespace
}  // namespace stoker::train
