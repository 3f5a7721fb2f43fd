// SPDX-License-Identifier: Apache-2.0
// `train runs` and `train runs --follow`: runs, from what they leave in their directories.
#include <gtest/gtest.h>

#include <filesystem>

#include "finished_run.h"

namespace stoker::cli {
namespace {

class RunsCommandTest : public ::testing::Test {
 protected:
  void SetUp() override { place_finished_run(work_); }
  const Workplace work_;
};

TEST_F(RunsCommandTest, LsListsTheRunsBelowAFolder) {
  std::filesystem::create_directories(work_ / "runs/deep");
  copy_folder(work_ / "run", work_ / "runs/deep/b");
  const Ended ended = run({"runs"}, work_.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const std::vector<std::string> lines = lines_of(ended.out);
  ASSERT_EQ(lines.size(), 2u) << ended.out;
  EXPECT_EQ(lines[0].rfind("run ", 0), 0u);
  EXPECT_EQ(lines[1].rfind("runs/deep/b  finished (epochs-done)  2/2", 0), 0u) << lines[1];
  EXPECT_EQ(lines_of(run({"runs", "run", "runs"}, work_.path()).out).size(), 3u);
  const std::string json = run({"runs", "run", "--json"}, work_.path()).out;
  EXPECT_NE(json.find("\"state\": \"finished\""), std::string::npos) << json;
}

TEST_F(RunsCommandTest, LsOfAFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(run({"runs", "absent"}, work_.path()).exit_code, 66);
  EXPECT_EQ(run({"runs", "data", "--curves"}, work_.path()).exit_code, 66);
}

TEST_F(RunsCommandTest, WatchOfAFinishedRunDrawsItAndEnds) {
  for (const Words& words : {Words{"runs", "--follow", "run"}, Words{"runs", "run", "--curves"}}) {
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    EXPECT_EQ(ended.out.rfind("run  finished (epochs-done)  epoch 2/2  update 8", 0), 0u) << ended.out;
    EXPECT_EQ(ended.out.find('\x1b'), std::string::npos) << "no terminal";
  }
  EXPECT_NE(run({"runs", "run", "--curves"}, work_.path()).out.find("\nloss  o validation "), std::string::npos);
}

TEST_F(RunsCommandTest, MlflowsStoreHasTheRunAndWrittenAgainHoldsItOnce) {
  for (int time = 0; time < 2; ++time) {
    const Ended ended = run({"runs", "run", "--to", "mlflow", "store"}, work_.path());
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_NE(ended.err.find("reason=written"), std::string::npos) << ended.err;
  }
  int runs = 0, losses = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(work_ / "store")) {
    runs += entry.path().filename() == "params" ? 1 : 0;
    losses += entry.path().filename() == "val_loss" || entry.path().filename() == "eval_loss" ? 1 : 0;
  }
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(losses, 1);
}

TEST_F(RunsCommandTest, APageFollowsARunUntilItEnds) {
  const Ended ended = run({"runs", "run", "--html", "--follow"}, work_.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(content_of_file(work_ / "run/report.html").find("http-equiv"), std::string::npos) << "the run has ended";
  EXPECT_EQ(run({"runs", "run", "--html", "--follow", "-o", "-"}, work_.path()).exit_code, 64);
}

TEST_F(RunsCommandTest, NamesOfForeignRunsSteerNoTerminal) {
  const std::string evil = "evil\x1b]0;owned\x07\x1b[2J\xc2\x9b;31m";
  std::filesystem::rename(work_ / "run", work_ / evil);
  for (const Words& words : {Words{"runs"}, Words{"runs", evil, "--curves"}, Words{"eval", evil, "--threads", "1"},
                             Words{"predict", evil, evil, "--threads", "1"}, Words{"inspect", "verify", evil}}) {
    Launch launch;
    launch.words = words;
    launch.directory = work_.path();
    launch.standard_output = Stream::terminal;
    const Ended ended = run(launch);
    for (const char* const control : {"\x1b]", "\x1b[2J", "\x07", "\xc2\x9b"}) {
      EXPECT_EQ((ended.out + ended.err).find(control), std::string::npos) << story_of(words, ended);
    }
  }
}

TEST_F(RunsCommandTest, WatchOnATerminalDrawsInPlaceAndEndsWithTheRun) {
  Launch launch;
  launch.words = {"runs", "--follow", "run"};
  launch.directory = work_.path();
  launch.standard_output = Stream::terminal;
  launch.columns = 110;
  launch.variables = {"TERM=xterm"};
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, 0) << story_of(launch.words, ended);
  EXPECT_NE(ended.out.find("\x1b[Hrun  finished"), std::string::npos) << ended.out;
}

}  // namespace
}  // namespace stoker::cli
