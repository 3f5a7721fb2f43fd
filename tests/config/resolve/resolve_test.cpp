// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "tests/config/command_words.h"

namespace stoker::config {
namespace {

using fixtures::failure_of;
using fixtures::parsed;

core::MachineFacts cpu_machine(int cpus) {
  core::MachineFacts machine;
  machine.cpus = cpus;
  machine.cpus_reason = "by affinity";
  return machine;
}

core::MachineFacts cuda_machine(int cpus, bool native_bfloat16 = true) {
  core::MachineFacts machine = cpu_machine(cpus);
  machine.accelerators = {{"Card A", 80'000'000'000, native_bfloat16}, {"Card B", 80'000'000'000, native_bfloat16}};
  return machine;
}

std::unique_ptr<Configuration> resolved(std::vector<std::string> words, const core::MachineFacts& machine) {
  words.insert(words.begin(), {"--data-dir", "/data/flowers/"});
  auto c = parsed(words);
  resolve_machine(*c, machine);
  return c;
}

std::unique_ptr<Configuration> resolved_for(std::vector<std::string> words, const DataFacts& data) {
  auto c = resolved(std::move(words), cpu_machine(2));
  resolve_data(*c, data);
  resolve_model(*c, {"some_net", 0.3, 0.2});
  return c;
}

const DataFacts kGray28{10, 1, 28, 28, 60000};
const DataFacts kPhotos{5, 3, 375, 500, 1000};

TEST(ResolveTest, ChoosesTheDeviceThatIsThere) {
  const auto cuda = resolved({}, cuda_machine(8));
  EXPECT_EQ(cuda->options.device.device, "cuda:0");
  EXPECT_EQ(cuda->table.find("device")->origin.detail, "first of 2, Card A");
  const auto cpu = resolved({}, cpu_machine(8));
  EXPECT_EQ(cpu->options.device.device, "cpu");
  EXPECT_EQ(cpu->table.find("device")->origin.kind, Origin::Kind::resolved);
  EXPECT_EQ(resolved({"--device", "cuda"}, cuda_machine(8))->options.device.device, "cuda:0");
  EXPECT_EQ(resolved({"--device", "cuda:1"}, cuda_machine(8))->options.device.device, "cuda:1");
  EXPECT_EQ(resolved({"--device", "cpu"}, cuda_machine(8))->options.device.device, "cpu");
}

TEST(ResolveTest, AnAutomaticBatchLeavesOpenWhatFollowsFromIt) {
  const auto c = resolved_for({"--batch-size", "auto", "--sched", "cosine", "--min-lr", "0.001"}, kPhotos);
  EXPECT_TRUE(c->options.optim.lr.is_auto());
  EXPECT_TRUE(c->options.loader.val_batch_size.is_auto());
  resolve_batch(*c, {128, 0, "the most that fits"});
  EXPECT_EQ(c->options.loader.batch_size.value(), 128);
  EXPECT_EQ(c->options.loader.val_batch_size.value(), 128);
  EXPECT_DOUBLE_EQ(c->options.optim.lr.value(), 0.05);
  EXPECT_EQ(c->table.find("batch-size")->origin.detail, "the most that fits");

  const auto too_small = resolved_for({"--batch-size", "auto", "--min-lr", "0.01"}, kPhotos);
  EXPECT_TRUE(failure_of([&] { resolve_batch(*too_small, {8, 0, ""}); }).says("min-lr 0.01 is above lr 0.003125"));
}

TEST(ResolveTest, ATotalBatchBecomesAccumulation) {
  const auto given = resolved({"--batch-size", "64", "--total-batch-size", "512"}, cpu_machine(2));
  EXPECT_EQ(given->options.train.accumulation_steps, 8);
  EXPECT_DOUBLE_EQ(given->options.optim.lr.value(), 0.2);
  const auto chosen = resolved_for({"--batch-size", "auto", "--total-batch-size", "512"}, kPhotos);
  resolve_batch(*chosen, {32, 0, "fits"});
  EXPECT_EQ(chosen->options.train.accumulation_steps, 16);
  EXPECT_DOUBLE_EQ(chosen->options.optim.lr.value(), 0.2) << "the rate follows the update, not the machine";

  EXPECT_TRUE(failure_of([] {
                resolved({"--batch-size", "48", "--total-batch-size", "512"}, cpu_machine(2));
              }).says("total-batch-size 512 is not a multiple of batch-size 48"));
  EXPECT_TRUE(
      failure_of([] {
        resolved({"--batch-size", "64", "--total-batch-size", "512", "--accumulation-steps", "4"}, cpu_machine(2));
      }).says("total-batch-size 512 is not batch-size 64 x accumulation-steps 4: leave one of them out"));
}

TEST(ResolveTest, ABatchFromACheckpointBringsItsAccumulationUnlessThatWasGiven) {
  const auto c = resolved_for({"--batch-size", "auto"}, kPhotos);
  resolve_batch(*c, {24, 4, "as in the checkpoint"});
  EXPECT_EQ(c->options.train.accumulation_steps, 4);
  const auto given = resolved_for({"--batch-size", "auto", "--accumulation-steps", "2"}, kPhotos);
  resolve_batch(*given, {24, 4, "as in the checkpoint"});
  EXPECT_EQ(given->options.train.accumulation_steps, 2);
}

TEST(ResolveTest, ADeviceThatWasAskedForIsNeverReplaced) {
  const auto none = failure_of([] { resolved({"--device", "cuda"}, cpu_machine(8)); });
  EXPECT_EQ(none.kind, core::ErrorKind::unavailable);
  EXPECT_EQ(none.message, "device cuda was asked for, but no CUDA device is available");
  EXPECT_NE(none.hint.find("--device cpu"), std::string::npos);
  const auto beyond = failure_of([] { resolved({"--device", "cuda:2"}, cuda_machine(8)); });
  EXPECT_EQ(beyond.kind, core::ErrorKind::unavailable);
  EXPECT_EQ(beyond.message, "device cuda:2 was asked for, but there are 2 CUDA devices");
}

TEST(ResolveTest, WorkersAndThreadsFollowTheCpus) {
  const auto small = resolved({}, cpu_machine(2));
  EXPECT_EQ(small->options.loader.num_workers.value(), 2);
  EXPECT_EQ(small->options.device.threads.value(), 2);
  EXPECT_EQ(small->table.find("threads")->origin.detail, "2 CPUs (by affinity)");
  EXPECT_EQ(resolved({}, cpu_machine(64))->options.loader.num_workers.value(), 4);
  EXPECT_EQ(resolved({}, cuda_machine(16))->options.loader.num_workers.value(), 15);
  EXPECT_EQ(resolved({}, cuda_machine(1))->options.loader.num_workers.value(), 1);
  EXPECT_EQ(resolved({"-j", "0"}, cuda_machine(16))->options.loader.num_workers.value(), 0);
}

TEST(ResolveTest, PrecisionFollowsTheDevice) {
  const auto cpu = resolved({"--amp"}, cpu_machine(2));
  EXPECT_EQ(cpu->options.precision.amp_dtype.value(), AmpDtype::bfloat16);
  EXPECT_TRUE(cpu->options.precision.channels_last.value());
  EXPECT_TRUE(resolved({}, cpu_machine(2))->options.precision.channels_last.value());
  const auto cuda = resolved({"--amp"}, cuda_machine(2));
  EXPECT_EQ(cuda->options.precision.amp_dtype.value(), AmpDtype::bfloat16);
  EXPECT_TRUE(cuda->options.precision.channels_last.value());
  EXPECT_FALSE(resolved({}, cuda_machine(2))->options.precision.channels_last.value());
  EXPECT_EQ(resolved({}, cuda_machine(2, false))->options.precision.amp_dtype.value(), AmpDtype::float16);
  EXPECT_FALSE(resolved({"--amp", "--no-channels-last"}, cuda_machine(2))->options.precision.channels_last.value());
}

TEST(ResolveTest, HalfPrecisionOnTheCpuIsRefused) {
  const auto failure = failure_of([] { resolved({"--fp16"}, cpu_machine(2)); });
  EXPECT_EQ(failure.kind, core::ErrorKind::config);
  EXPECT_EQ(failure.message, "amp-dtype float16 does not run on the CPU: use bfloat16, or no amp");
  EXPECT_NO_THROW(resolved({"--amp-dtype", "float16"}, cpu_machine(2))) << "without amp it has no effect";
}

TEST(ResolveTest, AutomaticLearningRateScalesWithTheImagesPerUpdate) {
  const auto c = resolved({"--lr-base", "0.1", "-b", "64", "--accumulation-steps", "8"}, cpu_machine(2));
  EXPECT_DOUBLE_EQ(c->options.optim.lr.value(), 0.2);
  EXPECT_EQ(c->table.find("lr")->origin.detail, "lr-base 0.1 x 512 images / 256");
  EXPECT_EQ(resolved({"--lr", "0.7"}, cpu_machine(2))->options.optim.lr.value(), 0.7);
}

TEST(ResolveTest, TheSameCommandFindsTheSameRunDirectory) {
  EXPECT_EQ(resolved({}, cpu_machine(2))->options.run.run_dir.value(), "runs/flowers");
  EXPECT_EQ(resolved({"--preset", "bench/fashion_mnist_peer"}, cpu_machine(2))->options.run.run_dir.value(),
            "runs/bench-fashion_mnist_peer");
  EXPECT_EQ(resolved({"--run-dir", "here"}, cpu_machine(2))->options.run.run_dir.value(), "here");
  auto bare = parsed({});
  resolve_machine(*bare, cpu_machine(2));
  EXPECT_EQ(bare->options.run.run_dir.value(), "runs/fashion_mnist");
}

TEST(ResolveTest, ConfigurationFilesNameTheRunDirectory) {
  Configuration c;
  c.command.config_files = {"configs/base.yaml", "/etc/big.yml"};
  resolve_machine(c, cpu_machine(2));
  EXPECT_EQ(c.options.run.run_dir.value(), "runs/base+big");
}

TEST(ResolveTest, SmallImagesKeepTheirSizeAndArePadded) {
  const auto c = resolved_for({}, kGray28);
  EXPECT_EQ(c->options.data.img_size.value(), 28);
  EXPECT_EQ(c->options.data.in_chans.value(), 1);
  EXPECT_EQ(c->options.data.num_classes.value(), 10);
  EXPECT_EQ(c->options.augment.train_crop.value(), TrainCrop::padded);
  EXPECT_EQ(c->options.augment.crop_padding.value(), 2);
  EXPECT_EQ(c->options.augment.crop_pct.value(), 1);
  EXPECT_EQ(c->options.loader.val_batch_size.value(), 256);
  EXPECT_EQ(c->options.data.mean, std::vector<double>{0.5});
  EXPECT_EQ(c->options.data.std, std::vector<double>{0.25});
  EXPECT_EQ(c->table.find("img-size")->origin.detail, "median size 28 x 28");
}

TEST(ResolveTest, PhotographsAreSeenAt224Pixels) {
  const auto c = resolved_for({}, kPhotos);
  EXPECT_EQ(c->options.data.img_size.value(), 224);
  EXPECT_EQ(c->options.augment.train_crop.value(), TrainCrop::random_resized);
  EXPECT_EQ(c->options.augment.crop_pct.value(), 0.875);
  EXPECT_EQ(c->options.loader.val_batch_size.value(), 64);
  EXPECT_EQ(c->options.data.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(c->options.data.std, (std::vector<double>{0.229, 0.224, 0.225}));
}

TEST(ResolveTest, PaddingGrowsWithTheImage) {
  EXPECT_EQ(resolved_for({"--img-size", "32"}, kPhotos)->options.augment.crop_padding.value(), 4);
  EXPECT_EQ(resolved_for({"--img-size", "64"}, kPhotos)->options.augment.crop_padding.value(), 8);
  EXPECT_EQ(resolved_for({"--img-size", "64"}, kPhotos)->options.augment.train_crop.value(), TrainCrop::random_resized);
  EXPECT_EQ(resolved_for({"--img-size", "32", "-b", "512"}, kPhotos)->options.loader.val_batch_size.value(), 512);
}

TEST(ResolveTest, GivenValuesAreLeftAlone) {
  const auto c = resolved_for(
      {"--mean", "0.1,0.2,0.3", "--std", "1,1,1", "--in-chans", "3", "--num-classes", "100", "--train-crop", "none"},
      kGray28);
  EXPECT_EQ(c->options.data.mean, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(c->options.data.num_classes.value(), 100);
  EXPECT_EQ(c->options.augment.train_crop.value(), TrainCrop::none);
  EXPECT_EQ(c->table.find("mean")->origin.kind, Origin::Kind::flag);
}

TEST(ResolveTest, ResolvingTwiceChangesNothing) {
  const auto c = resolved_for({}, kGray28);
  const std::string once = render_yaml(c->table, true);
  resolve_machine(*c, cpu_machine(8));
  resolve_data(*c, kPhotos.num_classes < 10 ? kPhotos : kGray28);
  EXPECT_EQ(render_yaml(c->table, true), once);
}

TEST(ResolveTest, DropRatesAreTheNetworksUnlessGiven) {
  const auto usual = resolved_for({}, kGray28);
  EXPECT_EQ(usual->options.model.drop_rate.value(), 0.3);
  EXPECT_EQ(usual->options.model.drop_path_rate.value(), 0.2);
  EXPECT_EQ(usual->table.find("drop-rate")->origin.detail, "usual for some_net");
  const auto given = resolved_for({"--dropout", "0.1", "--stochastic-depth", "0"}, kGray28);
  EXPECT_EQ(given->options.model.drop_rate.value(), 0.1);
  EXPECT_EQ(given->options.model.drop_path_rate.value(), 0.0);
}

TEST(ResolveTest, NothingStaysAutomaticButTheValidationSplitWhatIsMeasuredLaterAndWhatTheTaskLacks) {
  const auto c = resolved_for({}, kGray28);
  const std::set<std::string> later = {"val-split", "cache", "cache-budget", "target-mean",
                                       "target-scale"};  // of tasks that learn numbers
  for (const Row& row : c->table.rows()) EXPECT_EQ(row.is_auto(), later.count(row.name) > 0) << row.name;
}

TEST(ResolveTest, WhatIsMeasuredReplacesAChoiceButNotAGivenValue) {
  const auto chosen = resolved_for({}, kGray28);
  resolve_measured(chosen->table.row_of(chosen->options.loader.num_workers), "3", "2,000 images/s with 3");
  EXPECT_EQ(chosen->options.loader.num_workers.value(), 3);
  EXPECT_EQ(chosen->table.find("num-workers")->origin.detail, "2,000 images/s with 3");
  const auto given = resolved_for({"--num-workers", "1"}, kGray28);
  resolve_measured(given->table.row_of(given->options.loader.num_workers), "3", "2,000 images/s with 3");
  EXPECT_EQ(given->options.loader.num_workers.value(), 1);
}

struct LastBatch {
  int64_t images, batch, accumulation;
  bool is_left_out;
};

TEST(ResolveTest, AnAutomaticDropLastLeavesOutALastBatchThatWouldBeATinyUpdate) {
  for (const LastBatch& c : {
           LastBatch{900, 64, 1, true},                                         // 4 of 64
           LastBatch{60000, 128, 1, false},                                     // 96 of 128
           LastBatch{50000, 64, 1, false},                                      // 16 of 64
           LastBatch{128 + 15, 128, 1, true},                                   // less than an eighth
           LastBatch{128 + 16, 128, 1, false}, LastBatch{1024, 128, 1, false},  // every batch is full
           LastBatch{3, 128, 1, false},                                         // the only batch
           LastBatch{512 + 64, 128, 4, false},                                  // 64 of 512
           LastBatch{1024 + 40, 128, 4, true},                                  // 40 of 512
           LastBatch{1024 + 130, 128, 4, false}                                 // 2, in an update with 128 others
       }) {
    const auto configuration =
        resolved_for({"--batch-size", std::to_string(c.batch), "--accumulation-steps", std::to_string(c.accumulation)},
                     {10, 1, 28, 28, c.images});
    EXPECT_EQ(configuration->options.loader.drop_last.value(), c.is_left_out)
        << c.images << " in batches of " << c.batch << " x " << c.accumulation;
  }
}

TEST(ResolveTest, TheNetworkDecidesAboutASingleLastImageThatIsNoTinyUpdate) {
  for (const bool trains_on_one : {true, false}) {
    const auto configuration = resolved_for({"--batch-size", "8"}, {10, 1, 28, 28, /*train_images=*/17});
    EXPECT_TRUE(configuration->options.loader.drop_last.is_auto());
    resolve_drop_last(*configuration, 17, trains_on_one);
    EXPECT_EQ(configuration->options.loader.drop_last.value(), !trains_on_one);
  }
  for (const char* given : {"--drop-last", "--no-drop-last"}) {
    const auto configuration = resolved_for({"--batch-size", "8", given}, {10, 1, 28, 28, 17});
    resolve_drop_last(*configuration, 17, false);
    EXPECT_EQ(configuration->options.loader.drop_last.value(), given == std::string("--drop-last"));
  }
}

}  // namespace
}  // namespace stoker::config
