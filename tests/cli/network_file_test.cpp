// SPDX-License-Identifier: Apache-2.0
// `--model FILE` as a user calls it: a network that somebody else wrote trains like one of ours, where it is trusted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kConfig = 78;

class NetworkFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef STOKER_MADE_TORCHSCRIPT
    GTEST_SKIP() << "built without STOKER_TORCHSCRIPT";
#endif
    write_idx(work_);
    make("net", "net.ts");
  }

  void make(const std::string& kind, const std::string& name) const {
#ifdef STOKER_MADE_TORCHSCRIPT
    const std::string command = std::string(STOKER_MADE_TORCHSCRIPT) + " " + kind + " '" + (work_ / name) + "'";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
#endif
  }

  Ended train(const Words& more, int exit_code = 0, const std::string& model = "net.ts") const {
    Words words = {"--data-dir",   "data",        "--epochs", "1",    "--threads", "1",    "--num-workers",  "1",
                   "--batch-size", "16",          "--device", "cpu",  "--model",   model,  "--img-size",     "8",
                   "--no-amp",     "--model-ema", "--lr",     "0.05", "--freeze",  "conv", "--digest-every", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return ended(words, exit_code);
  }
  Ended ended(const Words& words, int exit_code = 0) const {
    Ended end = run(words, work_.path());
    EXPECT_EQ(end.exit_code, exit_code) << story_of(words, end);
    return end;
  }
  std::string numbers(const std::string& run_dir) const {
    std::string all;
    for (const char* const name : {"model", "model_ema", "optimizer", "random"}) {
      all += content_of_file(work_ / (run_dir + "/checkpoints/last/" + name + ".safetensors"));
    }
    return all;
  }

  const Workplace work_;
};

TEST_F(NetworkFileTest, IsNotOpenedWithoutTrustFromTheCommandLine) {
  const Ended refused = train({"--run-dir", "run"}, kConfig);
  EXPECT_NE(refused.err.find("--trust-model"), std::string::npos) << refused.err;
  work_.write("trust.yaml", "trust-model: true\n");
  ended({"--config", "trust.yaml", "--data-dir", "data", "--model", "net.ts"}, kConfig);
}

TEST_F(NetworkFileTest, ResumesWithTheSameBitsAndFromItsOwnCopy) {
  train({"--trust-model", "--run-dir", "whole"});
  train({"--trust-model", "--run-dir", "run", "--max-updates", "2"});
  const std::string half = numbers("run");
  train({"--trust-model", "--run-dir", "run"});
  EXPECT_GT(half.size(), 1000u);
  EXPECT_TRUE(numbers("run") != half);
  EXPECT_TRUE(numbers("run") == numbers("whole"));

  fs::remove(work_ / "net.ts");
  EXPECT_NE(ended({"eval", "run"}, kConfig).err.find("--trust-model"), std::string::npos);
  const Ended measured = ended({"eval", "run", "--trust-model"});
  EXPECT_NE(measured.err.find("reason=evaluated"), std::string::npos) << measured.err;
  ended({"inspect", "verify", "run", "--trust-model"});
}

TEST_F(NetworkFileTest, WithOtherBytesIsNotTheNetworkOfTheRun) {
  train({"--trust-model", "--run-dir", "run", "--max-updates", "2"});
  make("other", "net.ts");
  const Ended refused = train({"--trust-model", "--run-dir", "run"}, kConfig);
  EXPECT_NE(refused.err.find("--model: the checkpoint has TorchScript, SHA-256 "), std::string::npos) << refused.err;
  make("other", "run/network.ts");
  const Ended measured = ended({"eval", "run", "--trust-model"}, kConfig);
  EXPECT_NE(measured.err.find("another network"), std::string::npos) << measured.err;
}

TEST_F(NetworkFileTest, MustGiveOneNumberForEachClass) {
  make("five", "five.ts");
  const Ended refused = train({"--trust-model", "--run-dir", "run"}, kConfig, "five.ts");
  EXPECT_NE(refused.err.find("gives [2, 5] for two images; [2, 10] is needed"), std::string::npos) << refused.err;
  make("pair", "pair.ts");
  const Ended pair = train({"--trust-model", "--run-dir", "run"}, kConfig, "pair.ts");
  EXPECT_NE(pair.err.find("gives a Tuple, not one tensor"), std::string::npos) << pair.err;
}

TEST_F(NetworkFileTest, AProblemIsPrintedOnceAndAFixedModeIsNamed) {
  make("five", "five.ts");
  const Ended refused = train({"--trust-model", "--run-dir", "run"}, kConfig, "five.ts");
  EXPECT_EQ(refused.err.find("gives [2, 5]"), refused.err.rfind("gives [2, 5]")) << refused.err;
  EXPECT_EQ(refused.err.find("not proven"), std::string::npos) << refused.err;
  make("traced", "traced.ts");
  const std::string words = "computes dropout or batch norm as in evaluation";
  EXPECT_NE(train({"--trust-model", "--run-dir", "traced"}, 0, "traced.ts").err.find(words), std::string::npos);
  EXPECT_EQ(train({"--trust-model", "--run-dir", "scripted"}).err.find(words), std::string::npos);
}

TEST_F(NetworkFileTest, RefusesWhatOnlyNetworksOfThisProgramCanDo) {
  for (const Words& words : std::vector<Words>{
           {"--replicas", "2"}, {"--grad-checkpointing"}, {"--layer-decay", "0.5"}, {"--drop-rate", "0.1"}}) {
    Words all = {"--trust-model", "--run-dir", "run"};
    all.insert(all.end(), words.begin(), words.end());
    const Ended refused = train(all, kConfig);
    EXPECT_NE(refused.err.find("net.ts"), std::string::npos) << refused.err;
  }
}

TEST_F(NetworkFileTest, ComesBackAsAFileThatTrainsOn) {
  train({"--trust-model", "--run-dir", "run"});
  const Ended written = ended({"export", "run", "--trust-model", "--output", "back.pt", "--check"});
  EXPECT_NE(written.err.find("checked"), std::string::npos) << written.err;
  train({"--trust-model", "--run-dir", "on", "--amp"}, 0, "back.pt");
  ended({"export", "run", "--output", "weights.safetensors", "--trust-model"});
  train({"--trust-model", "--run-dir", "from", "--init-from", "weights.safetensors"});
}

}  // namespace
}  // namespace stoker::cli
