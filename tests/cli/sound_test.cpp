// SPDX-License-Identifier: Apache-2.0
// Sound files through the program: train, evaluate, predict, preview, and the damaged one.
#include <gtest/gtest.h>

#include "data/made_sound.h"
#include "exit_codes.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

class SoundTest : public ::testing::Test {
 protected:
  SoundTest() {
    for (const std::string split : {"train", "val"}) {
      for (int i = 0; i < 8; ++i) {
        const double hertz = (i < 4 ? 300 : 1200) + 20 * i;
        work_.write("data/" + split + (i < 4 ? "/low/" : "/high/") + std::to_string(i) + ".wav",
                    data::wav_of(data::tone_of(hertz, 0.6, 8000), 8000));
      }
    }
  }

  Words train_sounds(const Words& more = {}) const {
    Words words = train_words(
        {"--sample-rate", "8000", "--n-fft", "200", "--mels", "20", "--seconds", "0.25", "--batch-size", "4"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Ended run_here(const Words& words) const { return run(words, work_.path()); }

  const Workplace work_;
};

bool has_text(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(SoundTest, TrainEvaluateAndPredict) {
  const Words words = train_sounds({"--freq-mask", "1,4"});
  const Ended trained = run_here(words);
  ASSERT_EQ(trained.exit_code, 0) << story_of(words, trained);
  const std::string record = content_of_file(work_ / "run/checkpoints/last/preprocess.json");
  EXPECT_TRUE(has_text(record, "\"hop_length\": 100") || has_text(record, "\"hop_length\":100")) << record;

  const Ended evaluated = run_here({"eval", "run", "data/val", "--device", "cpu", "--json"});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const Words predict = {"predict", "run", "data/val/low", "data/val/high/4.wav", "--device", "cpu"};
  const Ended predicted = run_here(predict);
  EXPECT_EQ(predicted.exit_code, 0) << story_of(predict, predicted);
  EXPECT_EQ(lines_of(predicted.out).size(), 6u) << predicted.out;
  EXPECT_TRUE(has_text(predicted.out, "data/val/high/4.wav")) << predicted.out;
}

TEST_F(SoundTest, ShardsTrainAsFilesDo) {
  ASSERT_EQ(run_here({"pack", "data", "packed", "--shard-size", "3"}).exit_code, 0);
  const Words loose = train_sounds(), packed = train_sounds({"--data-dir", "packed", "--run-dir", "other"});
  ASSERT_EQ(run_here(loose).exit_code, 0);
  const Ended ended = run_here(packed);
  ASSERT_EQ(ended.exit_code, 0) << story_of(packed, ended);
  const std::string weights = "/checkpoints/last/model.safetensors";
  EXPECT_EQ(content_of_file(work_ / ("other" + weights)), content_of_file(work_ / ("run" + weights)));
  EXPECT_EQ(run_here({"eval", "run", "--data-dir", "packed"}).out, run_here({"eval", "run"}).out);
  EXPECT_EQ(run_here({"predict", "other", "data/val"}).out, run_here({"predict", "run", "data/val"}).out);
  EXPECT_EQ(run_here({"pack", "data", "small", "--max-side", "64"}).exit_code, kUsage);
}

TEST_F(SoundTest, PreviewDrawsThem) {
  const Words words = {"preview", "--data-dir", "data",      "--sample-rate", "8000",     "--n-fft",  "200",
                       "--mels",  "20",         "--seconds", "0.25",          "--output", "sheet.png"};
  const Ended ended = run_here(words);
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  EXPECT_TRUE(has_text(content_of_file(work_ / "sheet.png"), "PNG"));
}

TEST_F(SoundTest, TheDamagedOneEndsTheRunOrIsSkipped) {
  work_.write("data/train/low/2.wav", std::string("RIFF"));
  const Words words = train_sounds();
  const Ended ended = run_here(words);
  EXPECT_EQ(ended.exit_code, kData) << story_of(words, ended);
  EXPECT_TRUE(has_text(ended.err, "data/train/low/2.wav: is not read as a sound")) << ended.err;
  EXPECT_EQ(run_here(train_sounds({"--on-bad-image", "skip"})).exit_code, 0);
}

TEST_F(SoundTest, AFileThatIsCutShortEndsTheRunIsSkippedOrRepaired) {
  const std::string whole = data::wav_of(data::tone_of(320, 0.6, 8000), 8000);
  work_.write("data/train/low/2.wav", whole.substr(0, whole.size() - 3000));
  const Ended failed = run_here(train_sounds());
  EXPECT_EQ(failed.exit_code, kData) << failed.err;
  EXPECT_TRUE(has_text(failed.err, "data/train/low/2.wav: cut short")) << failed.err;
  const Ended skipped = run_here(train_sounds({"--on-bad-image", "skip", "--run-dir", "skipped"}));
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  const Ended repaired = run_here(train_sounds({"--on-bad-image", "repair", "--run-dir", "repaired"}));
  EXPECT_EQ(repaired.exit_code, 0) << repaired.err;
  EXPECT_TRUE(has_text(repaired.err, "data/train/low/2.wav")) << "it is named: " << repaired.err;
}

}  // namespace
}  // namespace stoker::cli
