// SPDX-License-Identifier: Apache-2.0
#include "train/setup/settings.h"

#include <gtest/gtest.h>

#include "tests/config/command_words.h"
#include "train/setup/plan_run.h"

namespace stoker::train {
namespace {

core::MachineFacts machine_of_cpus(int cpus) {
  core::MachineFacts machine;
  machine.cpus = cpus;
  return machine;
}

TEST(SettingsTest, WhatNobodyGaveStaysAutomaticWhenItIsLearned) {
  const auto given = fixtures::parsed({"--data-dir", "x", "--device", "cpu", "--cache", "ram"});
  Settings settings(*given, machine_of_cpus(2));
  const config::ResolvedOptions& options = settings.options();
  settings.learn(&config::Facts::threads, {1, "measured"});
  settings.learn(&config::Facts::num_workers, {1, "measured"});
  settings.learn(&config::Facts::cache, {config::CacheTier::none, "measured"});
  EXPECT_EQ(options.device.threads, 1);
  EXPECT_TRUE(settings.was_automatic(options.device.threads));
  EXPECT_TRUE(settings.was_automatic(options.loader.num_workers));
  EXPECT_FALSE(settings.was_automatic(options.device.device));
  EXPECT_FALSE(settings.was_automatic(options.loader.cache));
  EXPECT_EQ(options.loader.cache, config::CacheTier::ram);
}

TEST(SettingsTest, WhatIsTakenOverFromAnotherRankWasGiven) {
  const auto given = fixtures::parsed({"--data-dir", "x", "--device", "cpu"});
  Settings settings(*given, machine_of_cpus(2));
  EXPECT_TRUE(settings.was_automatic(settings.options().precision.channels_last));
  config::take_over(settings.options(), *given);
  settings.on_options_changed();
  EXPECT_FALSE(settings.was_automatic(settings.options().precision.channels_last));
}

TEST(SettingsTest, HalfPrecisionOfLightningsWordGivesWayOnACpuAndThatOfAFlagOfOursDoesNot) {
  const auto copied = fixtures::parsed({"--data-dir", "x", "--precision", "16-mixed"});
  EXPECT_EQ(Settings(*copied, machine_of_cpus(2)).options().precision.amp_dtype, config::AmpDtype::bfloat16);
  const auto asked = fixtures::parsed({"--data-dir", "x", "--fp16"});
  EXPECT_EQ(fixtures::failure_of([&] { Settings(*asked, machine_of_cpus(2)); }).kind, core::ErrorKind::config);
}

TEST(SettingsTest, EveryPresetCanBeTriedForAnEpoch) {
  for (const std::string& preset : config::preset_names()) {
    for (const std::string epochs : {"1", "2"}) {
      const auto given =
          fixtures::parsed({"--preset", preset, "--data-dir", "x", "--device", "cpu", "--no-amp", "--epochs", epochs});
      const Settings settings(*given, machine_of_cpus(2));
      EXPECT_LT(settings.options().schedule.warmup_epochs, settings.options().train.epochs) << preset;
    }
  }
}

TEST(SettingsTest, AWarmUpGivesWayToEpochsThatAreWrittenOverItAlone) {
  const auto tried = fixtures::parsed({"--preset", "s3_imagenet_resnet50", "--data-dir", "x", "--epochs", "2"});
  EXPECT_EQ(Settings(*tried, machine_of_cpus(2)).options().schedule.warmup_epochs, config::short_warmup(2));
  const auto whole = fixtures::parsed({"--preset", "s3_imagenet_resnet50", "--data-dir", "x", "--epochs", "20"});
  EXPECT_EQ(Settings(*whole, machine_of_cpus(2)).options().schedule.warmup_epochs, 5);
  const auto both = fixtures::parsed({"--data-dir", "x", "--epochs", "2", "--warmup-epochs", "5"});
  EXPECT_EQ(fixtures::failure_of([&] { Settings(*both, machine_of_cpus(2)); }).kind, core::ErrorKind::config);
}

TEST(SettingsTest, HeadPosesAreWhatTheirDataSetsHold) {
  for (const std::string dataset : {"biwi", "300wlp"}) {
    const auto given = fixtures::parsed({"--data-dir", "x", "--device", "cpu", "--dataset", dataset});
    EXPECT_EQ(Settings(*given, machine_of_cpus(2)).options().data.task, config::TaskKind::head_pose);
    const auto other = fixtures::parsed({"--data-dir", "x", "--dataset", dataset, "--task", "regression"});
    EXPECT_EQ(fixtures::failure_of([&] { Settings(*other, machine_of_cpus(2)); }).kind, core::ErrorKind::config);
  }
}

TEST(SettingsTest, FilesNeedNoDeviceAndHaveEveryCpu) {
  const auto given = fixtures::parsed({"--data-dir", "x", "--device", "cuda:63"});
  const Settings files = Settings::without_network(*given);
  EXPECT_EQ(files.options().loader.num_workers, core::read_machine_facts().cpus);
  EXPECT_EQ(files.given_data().data_dir, "x");
}

TEST(BatchRulesTest, TheyFollowWhatWasGiven) {
  const auto open = fixtures::parsed({"--data-dir", "x", "--device", "cpu", "--batch-size", "auto"});
  const plan::BatchRules free = batch_rules(Settings(*open, machine_of_cpus(2)).resolution());
  EXPECT_EQ(free.total_batch_size, 0);
  EXPECT_FALSE(free.val_batch_is_given);
  EXPECT_FALSE(free.keeps_any_last_batch);
  const auto given = fixtures::parsed({"--data-dir", "x", "--device", "cpu", "--batch-size", "auto", "--val-batch-size",
                                       "32", "--no-drop-last", "--total-batch-size", "512"});
  const plan::BatchRules bound = batch_rules(Settings(*given, machine_of_cpus(2)).resolution());
  EXPECT_EQ(bound.total_batch_size, 512);
  EXPECT_TRUE(bound.val_batch_is_given);
  EXPECT_TRUE(bound.keeps_any_last_batch);
}

}  // namespace
}  // namespace stoker::train
