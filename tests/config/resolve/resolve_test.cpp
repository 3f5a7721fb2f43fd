// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/config/resolved_words.h"

namespace stoker::config {
namespace {

using fixtures::facts_of;
using fixtures::failure_of;
using fixtures::is_assumed;
using fixtures::reason_of;

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

Resolution resolved(std::vector<std::string> words, const Facts& facts) {
  words.insert(words.begin(), {"--data-dir", "/data/flowers/"});
  return fixtures::resolved(words, facts);
}

Resolution resolved(const std::vector<std::string>& words, const core::MachineFacts& machine) {
  return resolved(words, facts_of(machine));
}

Facts facts_for(const DataFacts& data) {
  Facts facts = facts_of(cpu_machine(2), data);
  facts.model = {"some_net", 0.3, 0.2};
  return facts;
}

Resolution resolved_for(const std::vector<std::string>& words, const DataFacts& data) {
  return resolved(words, facts_for(data));
}

Facts facts_with_batch(const DataFacts& data, int64_t batch_size, const std::string& reason) {
  Facts facts = facts_for(data);
  facts.batch_size = {batch_size, reason};
  return facts;
}

const DataFacts kGray28{10, 1, 28, 28, 60000};
const DataFacts kPhotos{5, 3, 375, 500, 1000};

TEST(ResolveTest, ChoosesTheDeviceThatIsThere) {
  const auto cuda = resolved({}, cuda_machine(8));
  EXPECT_EQ(cuda.options.device.device, "cuda:0");
  EXPECT_EQ(reason_of(cuda, "device"), "first of 2, Card A");
  const auto cpu = resolved({}, cpu_machine(8));
  EXPECT_EQ(cpu.options.device.device, "cpu");
  EXPECT_EQ(reason_of(cpu, "device"), "no CUDA device found");
  EXPECT_EQ(resolved({"--device", "cuda"}, cuda_machine(8)).options.device.device, "cuda:0");
  EXPECT_EQ(resolved({"--device", "cuda:1"}, cuda_machine(8)).options.device.device, "cuda:1");
  EXPECT_EQ(resolved({"--device", "cpu"}, cuda_machine(8)).options.device.device, "cpu");
}

TEST(ResolveTest, ADriverThatDoesNotWorkIsAnErrorAndNeverTheCpuInSilence) {
  core::MachineFacts broken = cpu_machine(8);
  broken.accelerator_failure = "system not yet initialized";
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"--device", "cuda"}}) {
    const auto error = failure_of([&] { resolved(words, broken); });
    EXPECT_EQ(error.kind, core::ErrorKind::unavailable);
    EXPECT_TRUE(error.mentions("system not yet initialized")) << error.message;
  }
  EXPECT_EQ(resolved({"--device", "cpu"}, broken).options.device.device, "cpu");
}

TEST(ResolveTest, AGpuThatIsNotThereIsAnErrorWithTheCause) {
  core::MachineFacts without = cpu_machine(8);
  without.accelerator_absence = "there is no NVIDIA driver on this machine";
  const auto error = failure_of([&] { resolved({"--device", "cuda"}, without); });
  EXPECT_EQ(error.kind, core::ErrorKind::unavailable);
  EXPECT_TRUE(error.mentions("there is no NVIDIA driver on this machine")) << error.message;
  EXPECT_EQ(resolved({}, without).options.device.device, "cpu");
}

TEST(ResolveTest, TheDefaultsOfAGpuAreItsFastOnes) {
  const Resolution fast = resolved({}, cuda_machine(2));
  EXPECT_TRUE(fast.options.precision.amp && fast.options.precision.tf32 && fast.options.precision.channels_last);
  EXPECT_EQ(reason_of(fast, "tf32"), "Card A computes TF32");
  const Resolution float32 = resolved({"--no-amp"}, cuda_machine(2));
  EXPECT_TRUE(float32.options.precision.tf32 && float32.options.precision.channels_last);
  const Resolution exact = resolved({"--no-amp", "--no-tf32"}, cuda_machine(2));
  EXPECT_FALSE(exact.options.precision.tf32 || exact.options.precision.channels_last);
  EXPECT_FALSE(resolved({}, cuda_machine(2, /*native_bfloat16=*/false)).options.precision.tf32);
  const Resolution cpu = resolved({}, cpu_machine(2));
  EXPECT_FALSE(cpu.options.precision.tf32);
  EXPECT_EQ(reason_of(cpu, "tf32"), "") << "not worth a word";
  Facts resumed = facts_of(cuda_machine(2));
  resumed.checkpoint = CheckpointFacts{};
  resumed.checkpoint->tf32 = false;
  EXPECT_FALSE(resolved({}, resumed).options.precision.tf32) << "a run keeps the precision that it began with";
}

TEST(ResolveTest, AmpOnACpuIsDecidedByTheMeasuredNetworkWhereTheCpuComputesBfloat16) {
  core::MachineFacts native = cpu_machine(2);
  native.native_bfloat16 = true;
  const Resolution open = resolved({}, native);
  EXPECT_TRUE(open.waits_for_amp);
  EXPECT_TRUE(is_assumed(open, "amp"));
  Facts facts = facts_of(native);
  for (const bool is_faster : {true, false}) {
    facts.amp = {is_faster, "measured"};
    const Resolution c = resolved({}, facts);
    EXPECT_FALSE(c.waits_for_amp);
    EXPECT_EQ(c.options.precision.amp, is_faster);
    EXPECT_EQ(reason_of(c, "amp"), "measured");
    EXPECT_EQ(resolved({is_faster ? "--no-amp" : "--amp"}, facts).options.precision.amp, !is_faster) << "what is given";
  }
  facts.checkpoint = CheckpointFacts{};
  facts.checkpoint->amp = true;
  facts.checkpoint->amp_dtype = AmpDtype::bfloat16;
  EXPECT_TRUE(resolved({}, facts).options.precision.amp) << "a run keeps the precision that it began with";
  const Resolution emulated = resolved({}, cpu_machine(2));
  EXPECT_FALSE(emulated.options.precision.amp);
  EXPECT_FALSE(emulated.waits_for_amp);
  EXPECT_EQ(reason_of(emulated, "amp"), "this CPU does not compute bfloat16 natively");
}

TEST(ResolveTest, AmpOfADeterministicRunOnACpuDoesNotWaitForAMeasurementThatMayComeOutOtherwiseNextTime) {
  Facts facts = facts_of(cpu_machine(2));
  facts.machine.native_bfloat16 = true;
  const Resolution alike = resolved({"--deterministic"}, facts);
  EXPECT_FALSE(alike.waits_for_amp);
  EXPECT_FALSE(alike.options.precision.amp);
  EXPECT_EQ(reason_of(alike, "amp"), "deterministic: speed is not tried");
  EXPECT_TRUE(resolved({"--deterministic", "--amp"}, facts).options.precision.amp) << "what is given";
  facts.checkpoint = CheckpointFacts{};
  facts.checkpoint->amp = true;
  EXPECT_TRUE(resolved({"--deterministic"}, facts).options.precision.amp) << "a run keeps what it began with";
  EXPECT_TRUE(resolved({"--deterministic"}, cuda_machine(2)).options.precision.amp) << "a card's kind decides";
}

TEST(ResolveTest, LayoutAndThreadsOfACpuFollowWhatWasMeasuredUnlessTheyAreGivenOrTheRunGoesOn) {
  Facts facts = facts_of(cpu_machine(8));
  EXPECT_TRUE(resolved({}, facts).options.precision.channels_last);
  EXPECT_EQ(resolved({}, facts).options.device.threads, 8);
  facts.channels_last = {false, "measured"};
  facts.threads = {2, "measured"};
  const Resolution measured = resolved({}, facts);
  EXPECT_FALSE(measured.options.precision.channels_last);
  EXPECT_EQ(measured.options.device.threads, 2);
  EXPECT_EQ(reason_of(measured, "threads"), "measured");
  const Resolution given = resolved({"--channels-last", "--threads", "3"}, facts);
  EXPECT_TRUE(given.options.precision.channels_last);
  EXPECT_EQ(given.options.device.threads, 3);
  facts.checkpoint = CheckpointFacts{};
  facts.checkpoint->channels_last = true;
  facts.checkpoint->threads = 4;
  const Resolution continues = resolved({}, facts);
  EXPECT_TRUE(continues.options.precision.channels_last) << "a run keeps the layout that it began with";
  EXPECT_EQ(continues.options.device.threads, 4);
}

TEST(ResolveTest, AmpOnAGpuIsOnWhereItComputesBfloat16) {
  const Resolution native = resolved({}, cuda_machine(2));
  EXPECT_TRUE(native.options.precision.amp);
  EXPECT_TRUE(native.options.precision.channels_last);
  EXPECT_EQ(reason_of(native, "amp"), "Card A computes bfloat16 natively");
  const Resolution older = resolved({}, cuda_machine(2, /*native_bfloat16=*/false));
  EXPECT_FALSE(older.options.precision.amp);
  EXPECT_FALSE(older.options.precision.channels_last);
  EXPECT_TRUE(resolved({"--amp", "float16"}, cuda_machine(2, false)).options.precision.amp);
}

TEST(ResolveTest, WhatFollowsFromAnAutomaticBatchIsAssumedUntilThatIsKnown) {
  const std::vector<std::string> words = {"--batch-size", "auto", "--sched", "cosine", "--min-lr", "0.001"};
  const Resolution open = resolved_for(words, kPhotos);
  EXPECT_TRUE(open.waits_for_batch);
  for (const char* const option : {"batch-size", "val-batch-size", "lr", "drop-last"}) {
    EXPECT_TRUE(is_assumed(open, option)) << option;
    EXPECT_EQ(reason_of(open, option), "") << option;
  }
  const Resolution c = resolved(words, facts_with_batch(kPhotos, 128, "the most that fits"));
  EXPECT_FALSE(c.waits_for_batch);
  EXPECT_EQ(c.options.loader.batch_size, 128);
  EXPECT_EQ(c.options.loader.val_batch_size, 128);
  EXPECT_DOUBLE_EQ(c.options.optim.lr, 0.05);
  EXPECT_EQ(reason_of(c, "batch-size"), "the most that fits");
}

TEST(ResolveTest, RulesAboutTheLearningRateWaitForTheBatch) {
  const std::vector<std::string> words = {"--batch-size", "auto", "--min-lr", "0.04"};
  EXPECT_NO_THROW(resolved_for(words, kPhotos)) << "64 images are only assumed";
  const auto too_small = failure_of([&] { resolved(words, facts_with_batch(kPhotos, 8, "fits")); });
  EXPECT_TRUE(too_small.mentions("min-lr 0.04 is above lr 0.003125")) << too_small.message;
}

TEST(ResolveTest, ATotalBatchBecomesAccumulation) {
  const auto given = resolved({"--batch-size", "64", "--total-batch-size", "512"}, cpu_machine(2));
  EXPECT_EQ(given.options.train.accumulation_steps, 8);
  EXPECT_DOUBLE_EQ(given.options.optim.lr, 0.2);
  const std::vector<std::string> words = {"--batch-size", "auto", "--total-batch-size", "512"};
  const Resolution chosen = resolved(words, facts_with_batch(kPhotos, 32, "fits"));
  EXPECT_EQ(chosen.options.train.accumulation_steps, 16);
  EXPECT_DOUBLE_EQ(chosen.options.optim.lr, 0.2) << "the rate follows the update, not the machine";

  EXPECT_TRUE(failure_of([] {
                resolved({"--batch-size", "48", "--total-batch-size", "512"}, cpu_machine(2));
              }).mentions("total-batch-size 512 is not a multiple of batch-size 48"));
  EXPECT_TRUE(
      failure_of([] {
        resolved({"--batch-size", "64", "--total-batch-size", "512", "--accumulation-steps", "4"}, cpu_machine(2));
      }).mentions("total-batch-size 512 is not batch-size 64 x accumulation-steps 4: leave one of them out"));
}

TEST(ResolveTest, ACheckpointKeepsWhatWasChosenWhenTheRunBeganUnlessThatIsGivenNow) {
  Facts facts = facts_with_batch(kPhotos, 32, "the most that fits");
  facts.checkpoint =
      CheckpointFacts{/*threads=*/7, /*replicas=*/1, /*batch_size=*/24, /*accumulation_steps=*/4, /*drop_last=*/true};
  const Resolution c = resolved({"--batch-size", "auto"}, facts);
  EXPECT_EQ(c.options.device.threads, 7);
  EXPECT_EQ(c.options.loader.batch_size, 24);
  EXPECT_EQ(c.options.train.accumulation_steps, 4);
  EXPECT_TRUE(c.options.loader.drop_last);
  EXPECT_EQ(reason_of(c, "threads"), "as in the checkpoint, so that the bits stay the same");
  for (const char* const option : {"batch-size", "accumulation-steps", "drop-last"}) {
    EXPECT_EQ(reason_of(c, option), "as in the checkpoint") << option;
  }
  const Resolution given =
      resolved({"--batch-size", "auto", "--accumulation-steps", "2", "--threads", "1", "--no-drop-last"}, facts);
  EXPECT_EQ(given.options.device.threads, 1);
  EXPECT_EQ(given.options.train.accumulation_steps, 2);
  EXPECT_FALSE(given.options.loader.drop_last);
  const Resolution other_batch = resolved({"--batch-size", "16"}, facts);
  EXPECT_EQ(other_batch.options.loader.batch_size, 16);
  EXPECT_EQ(other_batch.options.train.accumulation_steps, 1) << "the steps belong to the batch of the checkpoint";
}

TEST(ResolveTest, ADeviceThatWasAskedForIsNeverReplaced) {
  const auto none = failure_of([] { resolved({"--device", "cuda"}, cpu_machine(8)); });
  EXPECT_EQ(none.kind, core::ErrorKind::unavailable);
  EXPECT_EQ(none.message, "device cuda was requested, but no CUDA device is available");
  EXPECT_NE(none.hint.find("--device cpu"), std::string::npos);
  const auto beyond = failure_of([] { resolved({"--device", "cuda:2"}, cuda_machine(8)); });
  EXPECT_EQ(beyond.kind, core::ErrorKind::unavailable);
  EXPECT_EQ(beyond.message, "device cuda:2 was requested, but there are 2 CUDA devices");
}

TEST(ResolveTest, WorkersAndThreadsFollowTheCpus) {
  const auto small = resolved({}, cpu_machine(2));
  EXPECT_EQ(small.options.loader.num_workers, 2);
  EXPECT_EQ(small.options.device.threads, 2);
  EXPECT_EQ(reason_of(small, "threads"), "2 CPUs (by affinity)");
  EXPECT_EQ(resolved({}, cpu_machine(64)).options.loader.num_workers, 4);
  EXPECT_EQ(resolved({}, cuda_machine(16)).options.loader.num_workers, 15);
  EXPECT_EQ(resolved({}, cuda_machine(1)).options.loader.num_workers, 1);
  EXPECT_EQ(resolved({"-j", "0"}, cuda_machine(16)).options.loader.num_workers, 0);
}

TEST(ResolveTest, PrecisionFollowsTheDevice) {
  const auto cpu = resolved({"--amp"}, cpu_machine(2));
  EXPECT_EQ(cpu.options.precision.amp_dtype, AmpDtype::bfloat16);
  EXPECT_TRUE(cpu.options.precision.channels_last);
  EXPECT_TRUE(resolved({}, cpu_machine(2)).options.precision.channels_last);
  const auto cuda = resolved({"--amp"}, cuda_machine(2));
  EXPECT_EQ(cuda.options.precision.amp_dtype, AmpDtype::bfloat16);
  EXPECT_TRUE(cuda.options.precision.channels_last);
  EXPECT_FALSE(resolved({"--no-amp", "--no-tf32"}, cuda_machine(2)).options.precision.channels_last);
  EXPECT_EQ(resolved({"--amp"}, cuda_machine(2, false)).options.precision.amp_dtype, AmpDtype::float16);
  EXPECT_FALSE(resolved({"--amp", "--no-channels-last"}, cuda_machine(2)).options.precision.channels_last);
}

TEST(ResolveTest, HalfPrecisionOnTheCpuIsRefused) {
  const auto failure = failure_of([] { resolved({"--fp16"}, cpu_machine(2)); });
  EXPECT_EQ(failure.kind, core::ErrorKind::config);
  EXPECT_EQ(failure.message,
            "amp float16 does not run on the CPU in this LibTorch: use amp bfloat16 or off, or LibTorch 2.4");
  Facts facts = facts_of(cpu_machine(2));
  facts.machine.computes_float16 = true;
  EXPECT_EQ(resolved({"--fp16"}, facts).options.precision.amp_dtype, AmpDtype::float16);
}

TEST(ResolveTest, HalfPrecisionOfAFileGivesWayOnTheCpu) {
  Facts facts = facts_of(cpu_machine(2));
  facts.half_may_give_way = true;
  facts.machine.native_bfloat16 = true;
  facts.amp = {true, "measured"};
  const auto cpu = resolved({"--precision", "16-mixed"}, facts);
  EXPECT_TRUE(cpu.options.precision.amp);
  EXPECT_EQ(cpu.options.precision.amp_dtype, AmpDtype::bfloat16);
  EXPECT_EQ(reason_of(cpu, "amp"), "the CPU computes no float16, which the configuration sets for a GPU");
  facts.machine.computes_float16 = true;
  EXPECT_EQ(reason_of(resolved({"--precision", "16-mixed"}, facts), "amp"),
            "float16, which the configuration sets for a GPU, is slow on the CPU");
  facts.machine.native_bfloat16 = false;
  facts.amp = {};
  EXPECT_FALSE(resolved({"--precision", "16-mixed"}, facts).options.precision.amp) << "as amp auto";
  Facts gpu = facts_of(cuda_machine(2));
  gpu.half_may_give_way = true;
  EXPECT_EQ(resolved({"--precision", "16-mixed"}, gpu).options.precision.amp_dtype, AmpDtype::float16);
}

TEST(ResolveTest, PhotographsHaveANetworkOfTheirOwnUnlessOneIsNamed) {
  DataFacts photographs = usual_data(Options());
  photographs.train_images = 1000;
  Facts facts = facts_of(cpu_machine(4), photographs);
  facts.names_model = false;
  EXPECT_EQ(resolved({}, facts).options.model.model, "resnet18");
  facts.data->train_images = 1'000'000;
  EXPECT_EQ(resolved({}, facts).options.model.model, "mobilenet_v3_small");
  EXPECT_NE(reason_of(resolved({}, facts), "model").find("resnet18 takes about "), std::string::npos);
  facts.checkpoint.emplace();
  facts.checkpoint->model = "small_cnn";
  EXPECT_EQ(resolved({}, facts).options.model.model, "small_cnn") << "a run keeps its network";
  facts.checkpoint.reset();
  facts.data->median_height = facts.data->median_width = 32;
  EXPECT_EQ(resolved({}, facts).options.model.model, "small_cnn");
  facts = facts_of(cpu_machine(4), photographs);
  EXPECT_EQ(resolved({}, facts).options.model.model, "small_cnn") << "the name was given";
}

TEST(ResolveTest, TheSameCommandFindsTheSameRunDirectory) {
  EXPECT_EQ(resolved({}, cpu_machine(2)).options.run.run_dir, "runs/flowers");
  EXPECT_EQ(resolved({"--preset", "bench/fashion_mnist_peer"}, cpu_machine(2)).options.run.run_dir,
            "runs/bench-fashion_mnist_peer");
  EXPECT_EQ(resolved({"--run-dir", "here"}, cpu_machine(2)).options.run.run_dir, "here");
  EXPECT_EQ(fixtures::resolved({}, facts_of(cpu_machine(2))).options.run.run_dir, "runs/fashion_mnist");
}

TEST(ResolveTest, ConfigurationFilesNameTheRunDirectory) {
  CommonFlags command;
  command.config_files = {"configs/base.yaml", "/etc/big.yml"};
  Facts facts = facts_of(cpu_machine(2));
  facts.run_name = run_name_of(command);
  EXPECT_EQ(resolve(Options(), facts).options.run.run_dir, "runs/base+big");
}

TEST(ResolveTest, SmallImagesKeepTheirSizeAndArePadded) {
  const auto c = resolved_for({"--epochs", "21"}, kGray28);
  EXPECT_EQ(c.options.data.img_size.height, 28);
  EXPECT_EQ(c.options.data.in_chans, 1);
  EXPECT_EQ(c.options.data.num_classes, 10);
  EXPECT_EQ(c.options.augment.train_crop, TrainCrop::padded);
  EXPECT_EQ(c.options.augment.crop_padding, 2);
  EXPECT_EQ(c.options.augment.crop_pct, 1);
  EXPECT_EQ(c.options.loader.val_batch_size, 256);
  EXPECT_EQ(c.options.data.mean, std::vector<double>{0.5});
  EXPECT_EQ(c.options.data.std, std::vector<double>{0.25});
  EXPECT_EQ(reason_of(c, "img-size"), "median size 28 x 28");
}

TEST(ResolveTest, SmallGrayImagesAreNotShiftedInFewEpochs) {
  EXPECT_EQ(resolved_for({"--epochs", "20"}, kGray28).options.augment.train_crop, TrainCrop::center);
  EXPECT_EQ(resolved_for({"--epochs", "20", "--in-chans", "3"}, kGray28).options.augment.train_crop, TrainCrop::padded);
  EXPECT_EQ(resolved_for({"--train-crop", "padded"}, kGray28).options.augment.train_crop, TrainCrop::padded);
}

TEST(ResolveTest, PhotographsAreSeenAt224Pixels) {
  const auto c = resolved_for({}, kPhotos);
  EXPECT_EQ(c.options.data.img_size.width, 224);
  EXPECT_EQ(c.options.augment.train_crop, TrainCrop::random_resized);
  EXPECT_EQ(c.options.augment.crop_pct, 0.875);
  EXPECT_EQ(c.options.loader.val_batch_size, 64);
  EXPECT_EQ(c.options.data.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(c.options.data.std, (std::vector<double>{0.229, 0.224, 0.225}));
}

TEST(ResolveTest, PaddingGrowsWithTheImage) {
  EXPECT_EQ(resolved_for({"--img-size", "32"}, kPhotos).options.augment.crop_padding, 4);
  EXPECT_EQ(resolved_for({"--img-size", "64"}, kPhotos).options.augment.crop_padding, 8);
  EXPECT_EQ(resolved_for({"--img-size", "64"}, kPhotos).options.augment.train_crop, TrainCrop::random_resized);
  EXPECT_EQ(resolved_for({"--img-size", "32", "-b", "512"}, kPhotos).options.loader.val_batch_size, 512);
}

TEST(ResolveTest, GivenValuesAreLeftAlone) {
  const auto c = resolved_for(
      {"--mean", "0.1,0.2,0.3", "--std", "1,1,1", "--in-chans", "3", "--num-classes", "100", "--train-crop", "none"},
      kGray28);
  EXPECT_EQ(c.options.data.mean, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(c.options.data.num_classes, 100);
  EXPECT_EQ(c.options.augment.train_crop, TrainCrop::none);
  EXPECT_EQ(reason_of(c, "mean"), "");
}

TEST(ResolveTest, ResolvingLeavesWhatWasGivenAsItIs) {
  const auto given = fixtures::parsed({"--data-dir", "/data/flowers"});
  const std::string before = render_yaml(given->table, true);
  const Resolution once = resolve(given->options, facts_for(kGray28));
  EXPECT_EQ(render_yaml(given->table, true), before);
  EXPECT_EQ(render_yaml(*given, resolve(given->options, facts_for(kGray28))), render_yaml(*given, once));
}

TEST(ResolveTest, DropRatesAreTheNetworksUnlessGiven) {
  const auto usual = resolved_for({}, kGray28);
  EXPECT_EQ(usual.options.model.drop_rate, 0.3);
  EXPECT_EQ(usual.options.model.drop_path_rate, 0.2);
  EXPECT_EQ(reason_of(usual, "drop-rate"), "usual for some_net");
  const auto given = resolved_for({"--dropout", "0.1", "--stochastic-depth", "0"}, kGray28);
  EXPECT_EQ(given.options.model.drop_rate, 0.1);
  EXPECT_EQ(given.options.model.drop_path_rate, 0.0);
}

TEST(ResolveTest, OnlyWhatWaitsForAFactIsAssumed) {
  const std::vector<std::string> none;
  EXPECT_EQ(resolved_for({}, kGray28).assumed, (std::vector<std::string>{"cache", "cache-budget"}));
  Facts all = facts_for(kGray28);
  all.cache_budget = {1'000'000, "half of 2 MB"};
  all.cache = {CacheTier::compressed, "it fits"};
  const Resolution c = resolved({}, all);
  EXPECT_EQ(c.assumed, none);
  EXPECT_EQ(c.options.loader.cache_budget, 1'000'000);
  EXPECT_EQ(c.options.loader.cache, CacheTier::compressed);
  const Resolution without_model = resolved({}, facts_of(cpu_machine(2), kGray28));
  EXPECT_TRUE(is_assumed(without_model, "drop-rate"));
  EXPECT_FALSE(is_assumed(without_model, "img-size"));
  const Resolution early = resolved({}, cpu_machine(2));
  for (const char* const option : {"img-size", "in-chans", "num-classes", "mean", "train-crop", "drop-rate"}) {
    EXPECT_TRUE(is_assumed(early, option)) << option;
  }
  for (const char* const option : {"device", "threads", "num-workers", "run-dir", "eval-metric", "lr"}) {
    EXPECT_NE(reason_of(early, option), "") << option;
  }
}

TEST(ResolveTest, WhatIsMeasuredReplacesAChoiceButNotAGivenValue) {
  Facts facts = facts_for(kGray28);
  facts.num_workers = {3, "2,000 images/s with 3"};
  const Resolution chosen = resolved({}, facts);
  EXPECT_EQ(chosen.options.loader.num_workers, 3);
  EXPECT_EQ(reason_of(chosen, "num-workers"), "2,000 images/s with 3");
  EXPECT_EQ(resolved({"--num-workers", "1"}, facts).options.loader.num_workers, 1);
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
    EXPECT_EQ(configuration.options.loader.drop_last, c.is_left_out)
        << c.images << " in batches of " << c.batch << " x " << c.accumulation;
  }
}

TEST(ResolveTest, TheNetworkDecidesAboutASingleLastImageThatIsNoTinyUpdate) {
  Facts facts = facts_for({10, 1, 28, 28, /*train_images=*/17});
  const Resolution open = resolved({"--batch-size", "8"}, facts);
  EXPECT_TRUE(open.waits_for_trains_on_one_image);
  EXPECT_TRUE(is_assumed(open, "drop-last"));
  for (const bool trains_on_one : {true, false}) {
    facts.trains_on_one_image = trains_on_one;
    const Resolution known = resolved({"--batch-size", "8"}, facts);
    EXPECT_FALSE(known.waits_for_trains_on_one_image);
    EXPECT_EQ(known.options.loader.drop_last, !trains_on_one);
  }
  for (const char* given : {"--drop-last", "--no-drop-last"}) {
    EXPECT_EQ(resolved({"--batch-size", "8", given}, facts).options.loader.drop_last,
              given == std::string("--drop-last"));
  }
}

}  // namespace
}  // namespace stoker::config
