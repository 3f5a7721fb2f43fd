// SPDX-License-Identifier: Apache-2.0
// A network that drops at random while it trains: stopped in the middle of an epoch and started again, its
// result is bit-identical to that of a run that was never stopped.
#include <gtest/gtest.h>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

Words dropping_words(const Words& model, const std::string& max_updates) {
  Words words = {"--data-dir",    "data", "--epochs",       "1",        "--threads",     "1",
                 "--num-workers", "1",    "--batch-size",   "16",       "--device",      "cpu",
                 "--run-dir",     "run",  "--no-save-best", "--no-amp", "--max-updates", max_updates};
  words.insert(words.end(), model.begin(), model.end());
  return words;
}

std::string trained(const Workplace& work, const Words& model, const std::vector<std::string>& stops) {
  write_idx(work);
  for (const std::string& stop : stops) {
    const Words words = dropping_words(model, stop);
    const Ended ended = run(words, work.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  }
  return content_of_file(work / "run/checkpoints/last/model.safetensors") +
         content_of_file(work / "run/checkpoints/last/random.safetensors");
}

void expect_same_bits(const Words& model) {
  const Workplace whole, stopped;
  const std::string expected = trained(whole, model, {"0"});
  EXPECT_GT(expected.size(), 1000u);
  EXPECT_TRUE(expected == trained(stopped, model, {"2", "0"}));
}

TEST(DropoutResumeTest, SmallCnnWithDropoutEndsWithTheSameBits) {
  expect_same_bits({"--model", "small_cnn", "--width", "8", "--drop-rate", "0.5"});
}

TEST(DropoutResumeTest, EfficientNetWithStochasticDepthEndsWithTheSameBits) {
  expect_same_bits({"--model", "efficientnet_b0", "--img-size", "32", "--grad-checkpointing"});
}

/// Weights, averages, optimizer and the table of epochs of a run of 8 updates that stopped after each of `stops`.
std::string fine_tuned(const Workplace& work, const Words& options, const std::vector<std::string>& stops) {
  write_idx(work);
  for (const std::string& stop : stops) {
    Words words = dropping_words({"--model", "small_cnn", "--width", "8", "--epochs", "2", "--model-ema"}, stop);
    words.insert(words.end(), options.begin(), options.end());
    const Ended ended = run(words, work.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  }
  std::string all;
  for (const char* const file : {"model", "model_ema", "optimizer", "random"}) {
    all += content_of_file(work / ("run/checkpoints/last/" + std::string(file) + ".safetensors"));
  }
  return all;
}

TEST(DropoutResumeTest, FrozenThawedAndMeasuredRunsEndWithTheSameBitsAndVerify) {
  const std::vector<Words> all = {
      {"--freeze-for", "3u", "--backbone-lr", "0.1", "--layer-decay", "0.9", "--opt", "adamw"},
      {"--freeze-for", "1e", "--freeze", "stem,down2"},
      {"--precise-bn", "40", "--bn-momentum", "0.3", "--freeze-for", "0.5e"}};
  for (const Words& options : all) {
    const Workplace whole, stopped;
    const std::string expected = fine_tuned(whole, options, {"0"});
    EXPECT_GT(expected.size(), 1000u);
    EXPECT_TRUE(expected == fine_tuned(stopped, options, {"2", "3", "5", "0"})) << options[0] << " " << options[1];
    const Ended verified = run({"inspect", "verify", "run", "--segments", "all"}, whole.path());
    EXPECT_EQ(verified.exit_code, 0) << story_of({"inspect", "verify"}, verified);
  }
}

}  // namespace
}  // namespace stoker::cli
