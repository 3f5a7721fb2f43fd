// SPDX-License-Identifier: Apache-2.0
// multi-band TIFF files through the program: train, evaluate, predict, check, and the odd one out.
#include <gtest/gtest.h>

#include "data/made_tiff.h"
#include "exit_codes.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

using data::TiffRecipe;

class BandsTest : public ::testing::Test {
 protected:
  BandsTest() {
    recipe_.width = recipe_.height = 12;
    recipe_.bits = 16;
    recipe_.planar = true;
    for (const std::string split : {"train", "val"}) {
      for (int i = 0; i < 8; ++i) {
        write(split + (i < 4 ? "/field/" : "/forest/") + std::to_string(i) + ".tif", i < 4 ? 0 : 40);
      }
    }
  }

  void write(const std::string& name, int salt) const {
    const data::Bytes file = data::band_tiff(recipe_, salt);
    work_.write("data/" + name, std::string(file.begin(), file.end()));
  }
  Ended run_here(const Words& words) const { return run(words, work_.path()); }

  TiffRecipe recipe_;
  const Workplace work_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(BandsTest, TrainEvaluateAndPredict) {
  const Words words = train_words({"--epochs", "3", "--batch-size", "4", "-v"});
  const Ended trained = run_here(words);
  ASSERT_EQ(trained.exit_code, 0) << story_of(words, trained);
  EXPECT_TRUE(contains(trained.out, "8 training and 8 validation samples")) << trained.out;
  EXPECT_TRUE(contains(trained.out, "measured on 8 samples of the training split")) << trained.out;

  const Ended evaluated = run_here({"eval", "run", "data/val", "--device", "cpu", "--json"});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const Words predict = {"predict", "run", "data/val", "--device", "cpu"};
  const Ended predicted = run_here(predict);
  EXPECT_EQ(predicted.exit_code, 0) << story_of(predict, predicted);
  EXPECT_EQ(lines_of(predicted.out).size(), 9u) << predicted.out;
  EXPECT_TRUE(contains(predicted.out, "data/val/field/0.tif")) << predicted.out;
}

TEST_F(BandsTest, CheckAndDryRunLookAtThem) {
  recipe_.bands = 5;
  write("train/forest/7.tif", 1);
  for (const Words& words :
       {Words{"check", "--data-dir", "data", "--all-files"}, train_words({"--dry-run", "--all-files"})}) {
    const Ended ended = run_here(words);
    EXPECT_EQ(ended.exit_code, kData) << story_of(words, ended);
    EXPECT_TRUE(contains(ended.out + ended.err,
                         "data/train/forest/7.tif: is 12 x 12 x 5 of float32, but 12 x 12 x 6 of "
                         "float32 is expected"))
        << story_of(words, ended);
  }
  EXPECT_EQ(run_here(train_words({"--dry-run"})).exit_code, kData);
}

TEST_F(BandsTest, TheOddOneEndsTheRun) {
  recipe_.bits = 8;
  write("train/field/2.tif", 1);
  const Words words = train_words();
  const Ended ended = run_here(words);
  EXPECT_EQ(ended.exit_code, kData) << story_of(words, ended);
  EXPECT_TRUE(contains(ended.err, "data/train/field/2.tif: is 12 x 12 x 6 of uint8, but 12 x 12 x 6 of float32"))
      << ended.err;
}

TEST_F(BandsTest, WhatIsForPicturesIsRefused) {
  for (const Words& more : {Words{"--hflip", "0.5"}, {"--train-crop", "random-resized"}, {"--img-size", "8"}}) {
    const Ended ended = run_here(train_words(more));
    EXPECT_EQ(ended.exit_code, kConfig) << ended.err;
    EXPECT_TRUE(contains(ended.err, "but samples of HDF5 and multi-band files are not")) << ended.err;
  }
  const Ended other = run_here(train_words({"--in-chans", "3"}));
  EXPECT_TRUE(contains(other.err, "in-chans is 3, but the samples have 6")) << other.err;
}

TEST_F(BandsTest, APictureIsNoInputOfSuchANetwork) {
  ASSERT_EQ(run_here(train_words()).exit_code, 0);
  work_.write("one.png", png_of(12, 12, 7));
  const Words words = {"predict", "run", "one.png", "--device", "cpu"};
  const Ended ended = run_here(words);
  EXPECT_EQ(ended.exit_code, kData) << story_of(words, ended);
  EXPECT_TRUE(contains(ended.err, "was trained on samples of a fixed size, 6 x 12 x 12, but one.png holds images"))
      << ended.err;
}

TEST_F(BandsTest, TheWeightsAreTheSameFromCopies) {
  std::string weights;
  work_.write("fast/keep", std::string("x"));
  for (const std::string run_dir : {"plain", "staged"}) {
    Words words = train_words({"--run-dir", run_dir});
    if (run_dir == "staged") words.insert(words.end(), {"--stage-dir", "fast"});
    ASSERT_EQ(run_here(words).exit_code, 0);
    const std::string now = content_of_file(work_ / (run_dir + "/checkpoints/last/model.safetensors"));
    if (weights.empty()) weights = now;
    EXPECT_TRUE(now == weights && !now.empty());
  }
}

}  // namespace
}  // namespace stoker::cli
