// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/draft.h"

#include <gtest/gtest.h>

#include "tests/config/resolved_words.h"

namespace stoker::config {
namespace {

using fixtures::facts_of;
using fixtures::Failure;
using fixtures::failure_of;
using fixtures::resolved;

Failure machine_failure(std::vector<std::string> words) {
  words.insert(words.begin(), {"--data-dir", "/data", "--device", "cpu"});
  return failure_of([&] { resolved(words, {}); });
}

Failure data_failure(std::vector<std::string> words) {
  words.insert(words.begin(), {"--data-dir", "/data"});
  return failure_of([&] { resolved(words, facts_of({}, {10, 3, 32, 32, 1000})); });
}

TEST(CheckTest, DefaultsFitTogether) { EXPECT_EQ(machine_failure({}).message, ""); }

TEST(CheckTest, EachRuleNamesTheOptionsThatDoNotFit) {
  const std::pair<std::vector<std::string>, const char*> kCases[] = {
      {{"--scale", "0.5,0.25"}, "scale 0.5,0.25: the first is larger"},
      {{"--ratio", "2,1"}, "ratio 2,1: the first is larger"},
      {{"--sched", "multistep"}, "sched multistep needs decay-milestones, such as 30,60,80"},
      {{"--decay-milestones", "30,20"}, "decay-milestones must increase: 30,20"},
      {{"--epochs", "5", "--warmup-epochs", "5"}, "warmup-epochs 5 leaves nothing of epochs 5: set it below, or to 0"},
      {{"--lr", "0.1", "--min-lr", "0.2"}, "min-lr 0.2 is above lr 0.1"},
      {{"--lr", "0.1", "--warmup-lr", "0.2"}, "warmup-lr 0.2 is above lr 0.1"},
      {{"--sched", "one-cycle", "--warmup-epochs", "1"},
       "sched one-cycle has a warm-up of its own (--one-cycle): set warmup-epochs to 0"},
      {{"--sched", "one-cycle", "--momentum", "0", "--no-nesterov"},
       "one-cycle-momentum needs momentum above 0: set momentum, or one-cycle-momentum off"},
      {{"--sched", "one-cycle", "--one-cycle-momentum", "0.9,0.8"}, "one-cycle-momentum 0.9,0.8: the first is larger"},
      {{"--momentum", "0"}, "nesterov needs momentum above 0: set momentum, or no-nesterov"},
      {{"--patience", "3", "--val-every", "never"}, "patience needs evaluations, but val-every is never"},
      {{"--color-jitter", "0.4,0.4"}, "color-jitter has 2 values: it takes 1, 3 or 4"},
      {{"--color-jitter", "0.4,0.4,0.4,0.6"}, "the hue of color-jitter is 0.6, above 0.5, half a circle"},
      {{"--gaussian-blur", "0,23,3"}, "gaussian-blur has a deviation of 3 to 2: the first is larger"},
      {{"--gaussian-blur", "0,4"}, "the kernel of gaussian-blur must be odd, not 4"},
      {{"--mixup-prob", "0.5"}, "mixup-prob mixes nothing without mixup-alpha or cutmix-alpha"},
      {{"--mixup-alpha", "0.2", "--mixup-switch-prob", "0.3"},
       "mixup-switch-prob chooses between mixup-alpha and cutmix-alpha: set both above 0"},
      {{"--val-fraction", "0.1", "--val-split", "test"},
       "val-fraction and val-split both set what to evaluate on: leave one of them out"},
      {{"--group", "patient"},
       "group keeps groups on one side of val-fraction or of folds: set val-fraction, such as 0.1"},
      {{"--loss", "huber"}, "loss huber is not for task multiclass, which has cross-entropy, bce, focal"},
      {{"--task", "regression", "--loss", "focal,2"},
       "loss focal is not for task regression, which has smooth-l1, l1, l2, huber"},
      {{"--task", "multilabel", "--loss", "bce,0.2"},
       "the threshold of loss bce is for the task multiclass, but the task is multilabel"},
      {{"--sched", "one-cycle", "--momentum", "0", "--no-nesterov", "--opt", "rmsprop"},
       "one-cycle-momentum needs momentum above 0: set momentum, or one-cycle-momentum off"},
  };
  for (const auto& [words, message] : kCases) {
    const Failure failure = machine_failure(words);
    EXPECT_EQ(failure.kind, core::ErrorKind::config) << message;
    EXPECT_EQ(failure.message, message);
  }
}

TEST(CheckTest, NearlyBrokenRulesHold) {
  EXPECT_EQ(machine_failure({"--scale", "0.5,0.5"}).message, "");
  EXPECT_EQ(machine_failure({"--sched", "multistep", "--decay-milestones", "1,2"}).message, "");
  EXPECT_EQ(machine_failure({"--momentum", "0", "--no-nesterov"}).message, "");
  EXPECT_EQ(machine_failure({"--sched", "one-cycle", "--momentum", "0", "--no-nesterov", "--one-cycle-momentum", "off"})
                .message,
            "");
  EXPECT_EQ(machine_failure({"--sched", "one-cycle", "--momentum", "0", "--opt", "adam"}).message, "");
  EXPECT_EQ(machine_failure({"--momentum", "0", "--opt", "adamw"}).message, "");
  EXPECT_EQ(machine_failure({"--val-fraction", "0.1"}).message, "");
  EXPECT_EQ(machine_failure({"--val-fraction", "0.1", "--group", "patient"}).message, "");
  EXPECT_EQ(machine_failure({"--loss", "bce,0.2"}).message, "");
  EXPECT_EQ(machine_failure({"--task", "multilabel", "--loss", "asymmetric,4"}).message, "");
  EXPECT_EQ(machine_failure({"--aa", "ta_wide", "--color-jitter", "0.4", "--reprob", "0.25"}).message, "");
  EXPECT_EQ(machine_failure({"--auto-augment", "ra", "--mixup", "0.2", "--cutmix", "1", "--mixup-prob", "0.5",
                             "--mixup-switch-prob", "0.3"})
                .message,
            "");
}

TEST(CheckTest, CropsAreCutFromTheResizedImage) {
  for (const char* const tta : {"ten-crop", "scales"}) {
    EXPECT_EQ(machine_failure({"--tta", tta}).message, "");
    EXPECT_EQ(machine_failure({"--tta", tta, "--eval-crop", "none"}).message,
              "tta ten-crop and scales cut parts out of the resized image: set eval-crop center, or tta hflip");
  }
}

TEST(CheckTest, MirrorImagesAreForTasksWhoseTargetsTheyShare) {
  for (const char* const task : {"multiclass", "binary", "multilabel"}) {
    EXPECT_EQ(machine_failure({"--task", task, "--tta", "hflip"}).message, "") << task;
  }
  for (const std::string task : {"regression", "head-pose"}) {
    const Failure failure = machine_failure({"--task", task, "--tta", "hflip"});
    EXPECT_EQ(failure.kind, core::ErrorKind::config) << task;
    EXPECT_EQ(failure.message, "tta averages over mirror images or crops, but the numbers that task " + task +
                                   " learns may be others for them: set tta none");
    EXPECT_EQ(machine_failure({"--task", task, "--tta", "none"}).message, "") << task;
  }
}

TEST(CheckTest, AllBrokenRulesAreListedAtOnce) {
  const Failure failure = machine_failure({"--scale", "0.9,0.1", "--sched", "multistep", "--fp16"});
  EXPECT_EQ(failure.message,
            "3 options do not fit together:\n"
            "  scale 0.9,0.1: the first is larger\n"
            "  sched multistep needs decay-milestones, such as 30,60,80\n"
            "  amp float16 does not run on the CPU in this LibTorch: use amp bfloat16 or off, or LibTorch 2.4");
}

TEST(CheckTest, TheBlurMustNotReachBeyondTheMirroredBorder) {
  const std::vector<std::string> words = {"--img-size", "16", "--gaussian-blur"};
  std::vector<std::string> fits = words, too_far = words;
  fits.push_back("0.5,31");
  too_far.push_back("0.5,33");
  EXPECT_EQ(data_failure(fits).message, "");
  EXPECT_EQ(data_failure(too_far).message,
            "the kernel of gaussian-blur, 33, reaches beyond the mirrored border of 16 pixels");
  EXPECT_EQ(data_failure({"--img-size", "16", "--gaussian-blur", "0.5"}).message, "");
}

TEST(CheckTest, QuarterTurnsAreForSquares) {
  EXPECT_EQ(data_failure({"--img-size", "16", "--rotate90", "0.5"}).message, "");
  EXPECT_EQ(data_failure({"--img-size", "16,24", "--rotate90", "0.5"}).message,
            "rotate90 turns squares, but img-size is 16,24: set rotate90 0 or a square img-size");
}

TEST(CheckTest, NormalizationMustMatchTheChannels) {
  const Failure failure = data_failure({"--mean", "0.5", "--std", "0.1,0.2"});
  EXPECT_EQ(failure.kind, core::ErrorKind::config);
  EXPECT_TRUE(failure.mentions("mean has 1 value, but in-chans is 3")) << failure.message;
  EXPECT_TRUE(failure.mentions("std has 2 values, but in-chans is 3")) << failure.message;
}

TEST(CheckTest, TheNetworkNeedsAnOutputForEachClass) {
  EXPECT_EQ(data_failure({"--num-classes", "9"}).message, "num-classes is 9, but the data has 10 classes");
  EXPECT_EQ(data_failure({"--num-classes", "11"}).message, "");
}

}  // namespace
}  // namespace stoker::config
