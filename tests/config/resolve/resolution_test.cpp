// SPDX-License-Identifier: Apache-2.0
// The choices of a resolution: where each comes from, and which options nobody gave.
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/config/resolved_words.h"

namespace stoker::config {
namespace {

Facts facts_of_cpus(int cpus) {
  Facts facts;
  facts.machine.cpus = cpus;
  return facts;
}

Resolution resolution_of(std::vector<std::string> words, const Facts& facts) {
  words.insert(words.begin(), {"--data-dir", "/data/flowers/"});
  return fixtures::resolved(words, facts);
}

/// Fails the test for an option that was not chosen.
ChoiceSource source_of(const Resolution& resolution, const std::string& option) {
  for (const Choice& choice : resolution.choices) {
    if (choice.option == option) return choice.source;
  }
  ADD_FAILURE() << option << " was not chosen";
  return ChoiceSource::rule;
}

TEST(ChoiceSourceTest, FactsOfTheMachineAreARuleAndWhatWasFoundOnItAMeasurement) {
  Facts facts = facts_of_cpus(8);
  EXPECT_EQ(source_of(resolution_of({}, facts), "threads"), ChoiceSource::rule);
  EXPECT_EQ(source_of(resolution_of({}, facts), "num-workers"), ChoiceSource::rule);
  facts.threads = {2, "2 are faster"};
  facts.num_workers = {3, "2,000 images/s with 3"};
  facts.channels_last = {false, "faster"};
  const Resolution measured = resolution_of({}, facts);
  for (const char* const option : {"threads", "num-workers", "channels-last"}) {
    EXPECT_EQ(source_of(measured, option), ChoiceSource::measured) << option;
  }
  facts.batch_size = usual_batch(Options(), /*replicas=*/1);
  EXPECT_EQ(source_of(resolution_of({"--batch-size", "auto"}, facts), "batch-size"), ChoiceSource::rule);
}

TEST(ChoiceSourceTest, WhatTheEnvironmentAsksForComesFromThereWhateverTheReason) {
  Facts facts = facts_of_cpus(8);
  facts.threads = {2, "any words", ChoiceSource::environment};
  EXPECT_EQ(source_of(resolution_of({}, facts), "threads"), ChoiceSource::environment);
  facts.threads = {2, "OMP_NUM_THREADS is 2"};
  EXPECT_EQ(source_of(resolution_of({}, facts), "threads"), ChoiceSource::measured);
}

TEST(ChoiceSourceTest, WhatStandsInForAnImpossibleValueComesFromTheConfiguration) {
  Facts facts = facts_of_cpus(2);
  facts.half_may_give_way = true;
  EXPECT_EQ(source_of(resolution_of({"--precision", "16-mixed"}, facts), "amp"), ChoiceSource::configuration);
  EXPECT_EQ(source_of(resolution_of({}, facts), "amp"), ChoiceSource::rule);
}

TEST(ChoiceSourceTest, WhatACheckpointKeepsComesFromThere) {
  Facts facts = facts_of_cpus(2);
  facts.names_model = facts.names_lr_base = false;
  facts.data = usual_data(Options());
  CheckpointFacts& kept = facts.checkpoint.emplace();
  kept.threads = 7;
  kept.batch_size = 24;
  kept.accumulation_steps = 4;
  kept.drop_last = true;
  kept.model = "resnet9";
  kept.hflip = 0.25;
  kept.lr = 0.3;
  kept.train_crop = TrainCrop::center;
  kept.opt = OptimizerKind::adamw;
  kept.sched = ScheduleKind::constant;
  kept.amp = kept.channels_last = kept.tf32 = false;
  const Resolution c = resolution_of({"--batch-size", "auto"}, facts);
  for (const char* const option : {"threads", "batch-size", "accumulation-steps", "drop-last", "model", "hflip", "lr",
                                   "train-crop", "opt", "sched", "amp", "channels-last", "tf32"}) {
    EXPECT_EQ(source_of(c, option), ChoiceSource::checkpoint) << option;
  }
  EXPECT_EQ(c.options.model.model, "resnet9");
  EXPECT_EQ(c.options.augment.hflip, 0.25);
  EXPECT_EQ(c.options.optim.lr, 0.3);
  EXPECT_EQ(c.options.augment.train_crop, TrainCrop::center);
  EXPECT_EQ(c.options.optim.opt, OptimizerKind::adamw);
  EXPECT_EQ(c.options.schedule.sched, ScheduleKind::constant);
  EXPECT_EQ(resolution_of({"--lr", "0.5"}, facts).options.optim.lr, 0.5) << "what is given";
}

TEST(ReplicasChoiceTest, ThereIsOneForEachProcessAndARunKeepsItsNumber) {
  Facts facts = facts_of_cpus(4);
  const auto replicas_of = [&](const std::vector<std::string>& words) {
    return resolution_of(words, facts).options.train.replicas;
  };
  EXPECT_EQ(replicas_of({}), 1);
  EXPECT_EQ(replicas_of({"--devices", "2"}), 2);
  EXPECT_EQ(resolution_of({"--devices", "2"}, facts).options.device.threads, 1) << "one per replica";
  EXPECT_EQ(replicas_of({"--devices", "2", "--replicas", "4"}), 4);
  EXPECT_EQ(source_of(resolution_of({"--devices", "2"}, facts), "replicas"), ChoiceSource::rule);
  facts.ranks = 4;  // of torchrun, on two machines
  EXPECT_EQ(replicas_of({}), 4);
  EXPECT_EQ(replicas_of({"--devices", "2"}), 4);
  facts.shards_replicas = false;  // eval
  EXPECT_EQ(replicas_of({"--devices", "3"}), 1);
  facts = facts_of_cpus(4);
  facts.checkpoint.emplace().replicas = 4;
  EXPECT_EQ(replicas_of({}), 4);
  EXPECT_EQ(replicas_of({"--devices", "2"}), 4);
  EXPECT_EQ(source_of(resolution_of({"--devices", "2"}, facts), "replicas"), ChoiceSource::checkpoint);
  EXPECT_EQ(fixtures::failure_of([&] {
              replicas_of({"--devices", "3"});
            }).message,
            "replicas 4 is not a multiple of devices 3: each computes as many");
  EXPECT_EQ(fixtures::failure_of([&] {
              resolution_of({"--devices", "2", "--sync-bn"}, facts);
            }).message,
            "sync-bn needs a process for each replica, but devices 2 compute 4: set devices 4, or leave it out");
  EXPECT_EQ(replicas_of({"--devices", "4", "--sync-bn"}), 4);
}

TEST(WasAutomaticTest, HoldsOfWhatNobodyGaveWhateverBecameOfIt) {
  Facts facts = facts_of_cpus(2);
  const Resolution none = resolution_of({}, facts);
  EXPECT_TRUE(none.was_automatic(none.options.device.threads));
  EXPECT_TRUE(none.was_automatic(none.options.loader.num_workers));
  EXPECT_TRUE(none.was_automatic(none.options.loader.drop_last)) << "assumed";
  EXPECT_TRUE(none.was_automatic(none.options.train.replicas)) << "a default";
  EXPECT_FALSE(none.was_automatic(none.options.loader.batch_size)) << "64 unless it is auto";
  EXPECT_FALSE(none.was_automatic(none.options.train.epochs)) << "it can never be";
  facts.threads = {1, "measured"};
  const Resolution measured = resolution_of({}, facts);
  EXPECT_TRUE(measured.was_automatic(measured.options.device.threads));

  const Resolution given =
      resolution_of({"--threads", "2", "--num-workers", "1", "--no-drop-last", "--batch-size", "auto"}, facts);
  EXPECT_FALSE(given.was_automatic(given.options.device.threads));
  EXPECT_FALSE(given.was_automatic(given.options.loader.num_workers));
  EXPECT_FALSE(given.was_automatic(given.options.loader.drop_last));
  EXPECT_TRUE(given.was_automatic(given.options.loader.batch_size));
}

TEST(WasAutomaticTest, AValueThatGivesWayWasGiven) {
  Facts facts = facts_of_cpus(2);
  facts.half_may_give_way = true;
  const Resolution c = resolution_of({"--precision", "16-mixed"}, facts);
  EXPECT_FALSE(c.was_automatic(c.options.precision.amp));
}

TEST(WasAutomaticTest, ACopyHasItsOwnOptionsAndNoOthers) {
  const Resolution first = resolution_of({"--threads", "2"}, facts_of_cpus(2));
  const Resolution copy = first;
  EXPECT_FALSE(copy.was_automatic(copy.options.device.threads));
  EXPECT_TRUE(copy.was_automatic(copy.options.train.replicas));
  const ResolvedOptions apart = first.options;
  EXPECT_THROW(first.was_automatic(apart.device.threads), std::logic_error);
}

TEST(WithoutNetworkTest, DevicesDoNotMatterAndWorkersHaveEveryCpu) {
  Facts facts = facts_of_cpus(8);
  facts.has_network = false;
  const Resolution c = resolution_of({"--device", "cuda:3", "--devices", "0,3", "--replicas", "2"}, facts);
  EXPECT_EQ(c.options.device.device, "cpu");
  EXPECT_EQ(c.options.loader.num_workers, 8);
  EXPECT_EQ(resolution_of({"--num-workers", "3"}, facts).options.loader.num_workers, 3);
  EXPECT_NO_THROW(resolution_of({"--fp16"}, facts)) << "no CPU computes it";
  facts.has_network = true;
  EXPECT_EQ(fixtures::failure_of([&] {
              resolution_of({"--device", "cuda:3"}, facts);
            }).kind,
            core::ErrorKind::unavailable);
}

TEST(WithoutNetworkTest, PosesAreFilesAsAnyOthersAndOptionsThatContradictEachOtherAreRefused) {
  Facts facts = facts_of_cpus(2);
  facts.has_network = false;
  EXPECT_NO_THROW(resolution_of({"--dataset", "biwi", "--task", "multiclass"}, facts));
  const std::vector<std::string> contradiction = {"--val-fraction", "0.1", "--val-split", "val"};
  EXPECT_EQ(fixtures::failure_of([&] { resolution_of(contradiction, facts); }).kind, core::ErrorKind::config);
  facts.has_network = true;
  EXPECT_EQ(fixtures::failure_of([&] {
              resolution_of({"--dataset", "biwi", "--task", "multiclass"}, facts);
            }).kind,
            core::ErrorKind::config);
  EXPECT_NO_THROW(resolution_of({"--dataset", "biwi"}, facts));
}

}  // namespace
}  // namespace stoker::config
