// SPDX-License-Identifier: Apache-2.0
// Clips through the program: frames reach the network in their order, and every command takes them or refuses them
// with a reason.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kFrames = 4;

/// data/{train,val}/{falling,rising}/v<n>/frame_<n>.png: the same pictures in both classes, in opposite
/// order.
class ClipsTest : public ::testing::Test {
 protected:
  ClipsTest() {
    write_split("train", 24);
    write_split("val", 8);
  }

  void write_split(const std::string& split, int videos) {
    for (int v = 0; v < videos; ++v) {
      for (int frame = 0; frame < kFrames; ++frame) {
        const int brightness = 20 + 5 * (v % 13) + 40 * frame;
        for (const bool rises : {false, true}) {
          const int number = rises ? frame : kFrames - 1 - frame;
          work_.write("data/" + split + (rises ? "/rising/v" : "/falling/v") + std::to_string(v) + "/frame_" +
                          std::to_string(number) + ".png",
                      png_of(16, 16, static_cast<uint8_t>(brightness)));
        }
      }
    }
  }

  Words with(const Words& first, const Words& more) {
    Words words = first;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// A tiny network of clips on them, for commands that write no run.
  Words clip_words(const Words& more = {}) {
    // clang-format off
    return with({"--data-dir", "data", "--clip-frames", "4", "--task", "binary", "--img-size", "16",
                 "--model", "two_stream_convlstm", "--backbone", "small_cnn", "--width", "4", "--lstm-channels", "8",
                 "--train-crop", "none", "--batch-size", "8", "--lr", "0.01", "--opt", "adamw",
                 "--threads", "1", "--num-workers", "1"}, more);
    // clang-format on
  }
  Words training_words(const Words& more) { return with(clip_words({"--run-dir", "run", "--no-amp"}), more); }
  Ended succeed(const Words& words) {
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }
  Ended fail(const Words& words) {
    const Ended ended = run(words, work_.path());
    EXPECT_NE(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }

  const Workplace work_;
};

TEST_F(ClipsTest, FramesReachTheNetworkInTheirOrder) {
  const Ended trained = succeed(training_words({"--epochs", "8", "--eval-metric", "roc-auc"}));
  EXPECT_NE(trained.out.find("clips of 4 frames"), std::string::npos) << trained.out;
  EXPECT_NE(trained.out.find("roc_auc 1.0000"), std::string::npos)
      << "the classes differ in the order of frames alone:\n"
      << trained.out;
  EXPECT_NE(trained.err.find("16 of the 16 validation videos are training videos, too"), std::string::npos)
      << trained.err;

  const std::vector<std::string> table = lines_of(succeed({"eval", "run"}).out);
  ASSERT_GE(table.size(), 3u);
  EXPECT_EQ(table[1].rfind("falling,8,", 0), 0u) << table[1];
  const std::vector<std::string> rows = lines_of(succeed({"predict", "run", "data/val/rising"}).out);
  ASSERT_EQ(rows.size(), 9u);
  EXPECT_EQ(rows[1].rfind("data/val/rising/v0,rising,", 0), 0u) << rows[1];
  const std::vector<std::string> one = lines_of(succeed({"predict", "run", "data/val/falling/v3"}).out);
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(one[1].rfind("data/val/falling/v3,falling,", 0), 0u) << one[1];
  const Words mirrored = {"predict", "run", "data/val/falling/v3", "--tta", "hflip"};
  EXPECT_EQ(lines_of(succeed(mirrored).out).at(1).rfind("data/val/falling/v3,falling,", 0), 0u);
}

TEST_F(ClipsTest, ANetworkOfSingleImagesIsRefusedWithBothWaysOut) {
  const Words plain = {"--data-dir", "data", "--run-dir", "run", "--model",       "small_cnn",
                       "--epochs",   "1",    "--threads", "1",   "--num-workers", "1"};
  const std::string message = fail(plain).err;
  EXPECT_NE(message.find("small_cnn takes single images, but the data are clips of 8 frames"), std::string::npos)
      << message;
  EXPECT_NE(message.find("--model two_stream_convlstm"), std::string::npos) << message;
  EXPECT_NE(message.find("--clip-frames 1"), std::string::npos) << message;
  succeed(with(plain, {"--clip-frames", "1", "--batch-size", "8", "--frame-sampling", "stride"}));
  EXPECT_EQ(lines_of(succeed({"predict", "run", "data/val/rising"}).out).size(), 9u) << "a frame of each video";
}

/// Frames in high quality are the same in both classes: they differ only in low quality.
TEST_F(ClipsTest, PairsOfHighAndLowQualityReachBothStreams) {
  for (const std::string split : {"train", "val"}) {
    for (int v = 0; v < 12; ++v) {
      for (const std::string label : {"fake", "real"}) {
        for (int frame = 0; frame < kFrames; ++frame) {
          const std::string video = "pairs/" + split + "/" + label + "/v" + std::to_string(v);
          const std::string name = "/frame_" + std::to_string(frame) + ".png";
          const int low = (label == "real" ? 170 : 60) + v;
          work_.write(video + "/hq" + name, png_of(16, 16, static_cast<uint8_t>(100 + 5 * v)));
          work_.write(video + "/lq" + name, png_of(8, 8, static_cast<uint8_t>(low)));
        }
      }
    }
  }
  const Words on_pairs = {"--data-dir",    "pairs",          "--epochs",       "6",
                          "--eval-metric", "roc-auc",        "--hflip",        "0.5",
                          "--train-crop",  "random-resized", "--cutmix-alpha", "0.2"};
  const Ended trained = succeed(training_words(on_pairs));
  EXPECT_NE(trained.out.find("each frame in high and in low quality, from the folders hq and lq"), std::string::npos);
  EXPECT_NE(trained.out.find("roc_auc 1.0000"), std::string::npos) << trained.out;
  EXPECT_NE(content_of_file(work_ / "run/checkpoints/best/preprocess.json").find("\"views\": 2"), std::string::npos);
  const auto first_video = [&](const std::string& label) {
    const std::vector<std::string> rows = lines_of(succeed({"predict", "run", "pairs/val/" + label}).out);
    EXPECT_EQ(rows.size(), 13u);
    EXPECT_EQ(rows.at(1).rfind("pairs/val/" + label + "/v0,", 0), 0u) << rows.at(1);
    const size_t error = rows.at(1).rfind(',');  // the last column, which is empty
    return std::stod(rows.at(1).substr(rows.at(1).rfind(',', error - 1) + 1));
  };
  EXPECT_GT(first_video("real"), first_video("fake"));
  const Ended judged = succeed({"eval", "run"});
  EXPECT_NE((judged.out + judged.err).find("roc_auc 1.0000"), std::string::npos) << judged.out << judged.err;
  succeed(with({"preview"}, clip_words({"--output", "p.png", "--data-dir", "pairs"})));
  succeed({"export", "run", "--output", "network.onnx"});

  EXPECT_NE(fail({"predict", "run", "data/val/rising"}).err.find("was trained on frames in high and low quality"),
            std::string::npos);
  fs::remove(work_ / "pairs/train/fake/v3/lq/frame_2.png");
  const Words again = training_words({"--data-dir", "pairs", "--run-dir", "other", "--epochs", "1"});
  EXPECT_NE(fail(again).err.find("pairs/train/fake/v3/lq/frame_2.png is missing"), std::string::npos);
}

TEST_F(ClipsTest, MixupCutMixAndCachesTakeClips) {
  for (const Words& more :
       {Words{"--mixup-alpha", "0.4", "--cache", "compressed"}, Words{"--cutmix-alpha", "1", "--cache", "ram"}}) {
    fs::remove_all(work_ / "run");
    succeed(training_words(with(more, {"--epochs", "2", "--hflip", "0.5", "--random-erasing", "0.5"})));
  }
}

TEST_F(ClipsTest, PreviewAndBenchShowClips) {
  const std::string preview = succeed(with({"preview"}, clip_words({"--output", "p.png"}))).out;
  EXPECT_TRUE(fs::exists(work_ / "p.png"));
  const std::string bench = succeed(with({"bench", "loader"}, clip_words())).out;
  EXPECT_NE(bench.find("clips/s"), std::string::npos) << bench;
}

TEST_F(ClipsTest, ABadFrameIsNamedAndItsClipSkipped) {
  work_.write("data/train/rising/v5/frame_2.png", "not a picture");
  const std::string message = fail(training_words({"--epochs", "1"})).err;
  EXPECT_NE(message.find("data/train/rising/v5: frame_2.png: "), std::string::npos) << message;
  fs::remove_all(work_ / "run");
  succeed(training_words({"--epochs", "1", "--on-bad-image", "skip,1"}));
}

}  // namespace
}  // namespace stoker::cli
