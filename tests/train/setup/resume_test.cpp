// SPDX-License-Identifier: Apache-2.0
#include "train/setup/resume.h"

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"

namespace stoker::train {
namespace {

/// A checkpoint without files, but for its manifest.
class CheckpointFactsTest : public testing::Test {
 protected:
  config::CheckpointFacts facts_of_manifest(const core::Json& manifest) const {
    engine::CheckpointFiles files(folder_ / "checkpoints");
    files.prepare();
    files.commit(
        1, [](const std::string&) { return std::map<std::string, engine::FileRecord>(); }, manifest);
    return checkpoint_facts(files.path_of(1));
  }
  config::CheckpointFacts facts_of_options(const core::Json& options) const {
    return facts_of_manifest({{"training_options", options}, {"threads", 3}});
  }

 private:
  const fixtures::TemporaryDirectory folder_;
};

TEST_F(CheckpointFactsTest, TheyAreTheOptionsThatTheRunBeganWith) {
  const auto facts = facts_of_options({{"batch-size", "24"},
                                       {"accumulation-steps", "4"},
                                       {"drop-last", "true"},
                                       {"model", "resnet9"},
                                       {"hflip", "0.25"},
                                       {"train-crop", "random-resized"},
                                       {"opt", "adamw"},
                                       {"lr", "0.003"},
                                       {"sched", "one-cycle"},
                                       {"amp", "false"},
                                       {"channels-last", "true"},
                                       {"tf32", "false"}});
  EXPECT_EQ(facts.threads, 3);
  EXPECT_EQ(facts.batch_size, 24);
  EXPECT_EQ(facts.accumulation_steps, 4);
  EXPECT_EQ(facts.drop_last, true);
  EXPECT_EQ(facts.model, "resnet9");
  EXPECT_EQ(facts.hflip, 0.25);
  EXPECT_EQ(facts.train_crop, config::TrainCrop::random_resized);
  EXPECT_EQ(facts.opt, config::OptimizerKind::adamw);
  EXPECT_EQ(facts.lr, 0.003);
  EXPECT_EQ(facts.sched, config::ScheduleKind::one_cycle);
  EXPECT_EQ(facts.amp, false);
  EXPECT_EQ(facts.channels_last, true);
  EXPECT_EQ(facts.tf32, false);
}

TEST_F(CheckpointFactsTest, TheRateOfSgdFollowsTheBatchAndANetworkOfAFileHasNoName) {
  const auto facts =
      facts_of_options({{"opt", "sgd"}, {"lr", "0.1"}, {"model", "TorchScript, SHA-256 ab"}, {"batch-size", "24"}});
  EXPECT_FALSE(facts.lr);
  EXPECT_FALSE(facts.model);
  EXPECT_FALSE(facts.batch_size) << "without the steps that belong to it";
}

TEST_F(CheckpointFactsTest, WhatIsNoValueOfAnOptionIsIgnored) {
  const auto facts = facts_of_options({{"hflip", "often"}, {"opt", "fastest"}, {"amp", "auto"}, {"sched", 3}});
  EXPECT_FALSE(facts.hflip);
  EXPECT_FALSE(facts.opt);
  EXPECT_FALSE(facts.amp);
  EXPECT_FALSE(facts.sched);
  EXPECT_FALSE(facts_of_manifest({{"training_options", "none"}}).hflip);
}

}  // namespace
}  // namespace stoker::train
