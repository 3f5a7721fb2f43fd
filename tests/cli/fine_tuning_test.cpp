// SPDX-License-Identifier: Apache-2.0
// `--teacher` and `--lora` as a user calls them.
#include <gtest/gtest.h>

#include <filesystem>

#include "exit_codes.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

class FineTuningTest : public ::testing::Test {
 protected:
  void SetUp() override { write_idx(work_); }

  Ended ended(const Words& words, int exit_code = 0) const {
    Ended end = run(words, work_.path());
    EXPECT_EQ(end.exit_code, exit_code) << story_of(words, end);
    return end;
  }
  /// A run of 4 updates per epoch.
  Ended train(const std::string& run_dir, const Words& more, int exit_code = 0) const {
    Words words = train_words({"--run-dir", run_dir, "--digest-every", "1", "--lr", "0.01"});
    words.insert(words.end(), more.begin(), more.end());
    return ended(words, exit_code);
  }
  std::string numbers(const std::string& run_dir) const {
    std::string all;
    for (const char* const name : {"model", "optimizer", "random"}) {
      all += content_of_file(work_ / (run_dir + "/checkpoints/last/" + name + ".safetensors"));
    }
    return all;
  }

  const Workplace work_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(FineTuningTest, ARunWithATeacherHasTheSameBitsAfterAStopAndForAnyNumberOfWorkers) {
  train("large", {"--width", "12"});
  const Words taught = {"--teacher", "large",    "--distill", "0.7,3", "--mixup-alpha", "0.2", "--accumulation-steps",
                        "2",         "--epochs", "2"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), taught.begin(), taught.end());
    return more;
  };
  const Ended whole = train("whole", with({}));
  EXPECT_TRUE(has(whole.out, "learns from large (small_cnn), 0.7 of the loss at temperature 3")) << whole.out;
  EXPECT_TRUE(has(content_of_file(work_ / "whole/plan.json"), "\"teacher\""));
  train("cut", with({"--max-updates", "3"}));
  EXPECT_TRUE(numbers("cut") != numbers("whole"));
  train("cut", with({"--num-workers", "0"}));
  EXPECT_TRUE(numbers("cut") == numbers("whole"));
  train("alone", {"--mixup-alpha", "0.2", "--accumulation-steps", "2", "--epochs", "2"});
  EXPECT_TRUE(numbers("alone") != numbers("whole")) << "the teacher counts";
  fs::rename(work_ / "large", work_ / "moved");
  ended({"eval", "whole"});
  ended({"export", "whole", "--output", "pupil.onnx"});
}

TEST_F(FineTuningTest, OutputsForImagesThatNeverChangeAreComputedOnceAndKept) {
  train("large", {"--width", "12"});
  const Words taught = {"--teacher", "large", "--train-crop", "none", "--hflip", "0", "--epochs", "2"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), taught.begin(), taught.end());
    return more;
  };
  EXPECT_TRUE(has(train("whole", with({})).out, "outputs of 64 images, which never change"));
  const std::string kept = content_of_file(work_ / "whole/teacher.safetensors");
  EXPECT_GT(kept.size(), 64u * 10u * 4u);
  train("cut", with({"--max-updates", "3"}));
  EXPECT_TRUE(content_of_file(work_ / "cut/teacher.safetensors") == kept);
  EXPECT_TRUE(
      has(train("cut", with({"--num-workers", "0"})).out, "outputs of 64 images are in cut/teacher.safetensors"));
  EXPECT_TRUE(numbers("cut") == numbers("whole"));
  train("lost", with({"--max-updates", "3"}));
  fs::remove(work_ / "lost/teacher.safetensors");
  train("lost", with({}));
  EXPECT_TRUE(numbers("lost") == numbers("whole"));
  ended({"inspect", "verify", "whole", "--segments", "all"});
  train("varied", {"--teacher", "large", "--hflip", "0.5", "--train-crop", "none"});
  EXPECT_FALSE(fs::exists(work_ / "varied/teacher.safetensors"));
}

TEST_F(FineTuningTest, AResumeWithAnotherTeacherIsRefusedWhateverItsPath) {
  train("large", {});
  train("other", {"--seed", "5"});
  train("pupil", {"--teacher", "large", "--max-updates", "2"});
  const Ended refused = train("pupil", {"--teacher", "other"}, kConfig);
  EXPECT_TRUE(has(refused.err, "--teacher: the checkpoint has checkpoint ")) << refused.err;
  EXPECT_TRUE(has(train("pupil", {}, kConfig).err, "--teacher: "));
  fs::rename(work_ / "large", work_ / "moved");
  train("pupil", {"--teacher", "moved"});
}

TEST_F(FineTuningTest, ATeacherOfOtherClassesTasksOrChannelsIsRefused) {
  train("digits", {});
  write_folders(work_);
  const auto refused = [&](const Words& more) {
    Words words = {"--data-dir", "data", "--dataset", "folder", "--img-size", "16", "--val-split", "val"};
    words.insert(words.end(), more.begin(), more.end());
    return train("pupil", words, kConfig).err;
  };
  EXPECT_TRUE(has(refused({"--teacher", "digits", "--in-chans", "1"}), "2 of the 2 classes of this run"));
  EXPECT_TRUE(has(refused({"--teacher", "digits", "--in-chans", "3"}), "it sees 1 channels, this run 3"));
  EXPECT_TRUE(has(refused({"--distill", "0.5"}), "distill needs a teacher"));
  EXPECT_TRUE(has(refused({"--teacher", "digits", "--task", "binary"}), "task multiclass"));
  EXPECT_EQ(train("pupil", {"--teacher", "nothing"}, kNoInput).exit_code, kNoInput);
}

TEST_F(FineTuningTest, LowRankRunsResumeWithTheSameBitsAndAreMergedForAllOthers) {
  const Words adapted = {"--model",         "vit_s_16", "--lora",       "2", "--img-size", "32",
                         "--prove-backend", "off",      "--batch-size", "32"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), adapted.begin(), adapted.end());
    return more;
  };
  const Ended whole = train("whole", with({}));
  EXPECT_TRUE(has(whole.out, "of them learn (LoRA of rank 2)")) << whole.out;
  train("cut", with({"--max-updates", "1"}));
  train("cut", with({}));
  EXPECT_TRUE(numbers("cut") == numbers("whole"));
  const std::string header = content_of_file(work_ / "whole/checkpoints/last/model.safetensors").substr(0, 60000);
  EXPECT_TRUE(has(header, "encoder.layers.encoder_layer_0.self_attention.in_proj_lora_A"));
  ended({"inspect", "verify", "whole"});

  const Ended measured = ended({"eval", "whole", "--which", "last"});
  EXPECT_TRUE(has(measured.err, "reason=evaluated")) << measured.err;
  ended({"export", "whole", "--output", "merged.safetensors"});
  const std::string merged = content_of_file(work_ / "merged.safetensors").substr(0, 60000);
  EXPECT_FALSE(has(merged, "lora_A"));
  train("on", {"--model", "vit_s_16", "--img-size", "32", "--init-from", "whole", "--batch-size", "32",
               "--prove-backend", "off", "--max-updates", "1"});
  train("refused", with({"--freeze-for", "1e"}), kConfig);
  train("refused", {"--lora", "2"}, kConfig);
}

}  // namespace
}  // namespace stoker::cli
