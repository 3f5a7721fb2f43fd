// SPDX-License-Identifier: Apache-2.0
// Video files through the program: train, continue, evaluate, predict, and the damaged one.
#include <gtest/gtest.h>

#include <filesystem>

#include "data/made_video.h"
#include "exit_codes.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

constexpr int kSide = 16;

bool video_text_has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// data/{train,val}/{falling,rising}/v<n>.mkv: the same pictures in both classes, in opposite order.
class VideoTest : public ::testing::Test {
 protected:
  VideoTest() {
    for (const std::string split : {"train", "val"}) {
      for (const bool rises : {false, true}) {
        const std::string folder = "data/" + split + (rises ? "/rising" : "/falling");
        std::filesystem::create_directories(work_ / folder);
        for (int v = 0; v < 6; ++v) {
          std::vector<std::vector<uint8_t>> frames;
          for (int frame = 0; frame < 4; ++frame) {
            const int brightness = 20 + 5 * v + 40 * (rises ? frame : 3 - frame);
            frames.emplace_back(size_t{3} * kSide * kSide, static_cast<uint8_t>(brightness));
          }
          data::VideoRecipe recipe;
          recipe.width = recipe.height = kSide;
          data::write_video_file(work_ / folder + "/v" + std::to_string(v) + ".mkv", frames, recipe);
        }
      }
    }
  }

  Words train_videos(const Words& more = {}) const {
    // clang-format off
    Words words = {"--data-dir", "data", "--clip-frames", "4", "--task", "binary", "--img-size", "16",
                   "--model", "two_stream_convlstm", "--backbone", "small_cnn", "--width", "4", "--lstm-channels", "8",
                   "--train-crop", "none", "--batch-size", "4", "--lr", "0.01", "--opt", "adamw", "--epochs", "2",
                   "--threads", "1", "--num-workers", "1", "--run-dir", "run", "--no-amp", "--device", "cpu"};
    // clang-format on
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Ended run_here(const Words& words) const { return run(words, work_.path()); }
  Ended succeed(const Words& words) const {
    const Ended ended = run_here(words);
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }

  const Workplace work_;
};

TEST_F(VideoTest, TrainEvaluateAndPredict) {
  const Ended trained = succeed(train_videos());
  EXPECT_TRUE(video_text_has(trained.out, "clips of 4 frames, spread over each")) << trained.out;
  succeed({"eval", "run", "--json"});
  succeed({"eval", "run", "data/val", "--json"});
  EXPECT_EQ(lines_of(succeed({"predict", "run", "data/val/rising/v1.mkv"}).out).size(), 2u);
  EXPECT_EQ(lines_of(succeed({"predict", "run", "data/val"}).out).size(), 13u);
  EXPECT_EQ(lines_of(succeed({"predict", "run", "data/val/rising/v1.mkv", "data/val/falling/v1.mkv"}).out).size(), 3u);
}

TEST_F(VideoTest, AListOfVideosIsTrainedOnAndEvaluated) {
  std::string list = "path,label\n";
  for (int v = 0; v < 6; ++v) {
    for (const std::string name : {"falling", "rising"}) {
      list += "train/" + name + "/v" + std::to_string(v) + ".mkv," + name + "\n";
    }
  }
  work_.write("data/clips.csv", list);
  Words words = train_videos({"--val-fraction", "0.3"});
  words[1] = "data/clips.csv";
  succeed(words);
  succeed({"eval", "run", "--json"});
  succeed({"predict", "run", "data/val/rising"});
}

TEST_F(VideoTest, TheDamagedOneEndsTheRunOrIsSkipped) {
  const std::string path = "data/train/rising/v2.mkv", whole = content_of_file(work_ / path);
  work_.write(path, whole.substr(0, whole.size() / 2));
  const Words words = train_videos();
  const Ended ended = run_here(words);
  EXPECT_EQ(ended.exit_code, kData) << story_of(words, ended);
  EXPECT_TRUE(video_text_has(ended.err, "v2.mkv: cut short")) << ended.err;
  succeed(train_videos({"--on-bad-image", "skip"}));
}

TEST_F(VideoTest, ThePlanCountsTheFramesThatDecodersHold) {
  const Words words = {"plan",
                       "--data-dir",
                       "data",
                       "--clip-frames",
                       "4",
                       "--img-size",
                       "16",
                       "--model",
                       "two_stream_convlstm",
                       "--backbone",
                       "small_cnn",
                       "--batch-size",
                       "4",
                       "--device",
                       "cpu",
                       "--num-workers",
                       "2"};
  const Ended planned = succeed(words);
  EXPECT_TRUE(video_text_has(planned.out, "decode scratch    16.8 MB")) << planned.out;
}

}  // namespace
}  // namespace stoker::cli
