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

}  // namespace
}  // namespace stoker::cli
