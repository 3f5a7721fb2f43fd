// SPDX-License-Identifier: Apache-2.0
// --on-end: a command that learns how a run ended, however it did.
#include <gtest/gtest.h>

#include <filesystem>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

constexpr const char* kPrintVariables =
    "echo \"$STOKER_EXIT_CODE|$STOKER_REASON|$STOKER_RUN_DIR|$STOKER_METRIC|$STOKER_BEST|$STOKER_UPDATES|"
    "$STOKER_CHECKPOINT\" >> printed";

class OnEndTest : public ::testing::Test {
 protected:
  void SetUp() override { write_idx(work_); }

  Ended train(const Words& more) { return run(train_words(more), work_.path()); }
  std::string printed() const { return content_of_file(work_ / "printed"); }

  const Workplace work_;
};

TEST_F(OnEndTest, LearnsExitCodeReasonDirectoryAndBestValue) {
  const Ended ended = train({"--on-end", kPrintVariables});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::string line = last_line(ended.err);
  const std::string value = line.substr(line.find(" value=") + 7, line.find(" checkpoint=") - line.find(" value=") - 7);
  EXPECT_EQ(printed(), "0|epochs-done|run|top1|" + value + "|4|run/checkpoints/step-00000004\n");
}

TEST_F(OnEndTest, LearnsOfFailuresAndOfStops) {
  EXPECT_EQ(train({"--on-end", kPrintVariables, "--data-dir", "nowhere"}).exit_code, 66);
  EXPECT_EQ(printed(), "66|error|run||||\n");
  const Ended stopped = train({"--on-end", kPrintVariables, "--max-time", "0.001s", "--epochs", "50"});
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_NE(printed().find("\n75|max-time|run|"), std::string::npos) << printed();
}

TEST_F(OnEndTest, AFailingCommandIsAWarningAndChangesNoExitCode) {
  const Ended ended = train({"--on-end", "exit 7"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_NE(ended.err.find("--on-end: the command ended with exit code 7"), std::string::npos) << ended.err;
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=0 reason=epochs-done", 0), 0u) << ended.err;
}

TEST_F(OnEndTest, ItsTextIsInNoLog) {
  for (const Words& words : {Words{"--on-end", "true token=hunter2"}, Words{"--on_end=true token=hunter2"}}) {
    const Ended ended = train(words);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_EQ((ended.out + ended.err + content_of_file(work_ / "run/train.log")).find("hunter2"), std::string::npos);
    std::filesystem::remove_all(work_ / "run");
  }
}

TEST_F(OnEndTest, IsNotRunByWhatTrainsNothing) {
  EXPECT_EQ(train({"--on-end", kPrintVariables, "--dry-run"}).exit_code, 0);
  EXPECT_EQ(train({"--on-end", kPrintVariables, "--print-config"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(work_ / "printed"));
}

TEST_F(OnEndTest, StandsOnTheCommandLineAlone) {
  work_.write("c.yaml", "on-end: true\n");
  const Ended ended = train({"-c", "c.yaml"});
  EXPECT_EQ(ended.exit_code, 78) << ended.err;
  EXPECT_NE(ended.err.find("c.yaml:1: on-end: stands on the command line alone: --on-end"), std::string::npos)
      << ended.err;
}

TEST_F(OnEndTest, OfSeveralProcessesOneRunsIt) {
  const Ended ended = train({"--on-end", kPrintVariables, "--devices", "2", "--replicas", "2", "--batch-size", "8"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(printed(), "0|finished|run||||\n");
}

}  // namespace
}  // namespace stoker::cli
