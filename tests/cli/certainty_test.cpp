// SPDX-License-Identifier: Apache-2.0
// The intervals and the calibration of `train eval`, and which of two runs is better.
#include <gtest/gtest.h>

#include "finished_run.h"

namespace stoker::cli {
namespace {

class CertaintyCommandTest : public ::testing::Test {
 protected:
  void SetUp() override { place_finished_run(work_); }
  Ended eval(Words more) {
    Words words = {"eval", "run", "--threads", "1", "--num-workers", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }
  const Workplace work_;
};

TEST_F(CertaintyCommandTest, EvalPrintsIntervalsAndCalibration) {
  const std::string printed = eval({}).err;
  EXPECT_NE(printed.find("\n95 %    loss "), std::string::npos) << printed;
  EXPECT_NE(printed.find("  top1 "), std::string::npos) << printed;
  EXPECT_NE(printed.find("\ncalibration  mean confidence "), std::string::npos) << printed;
}

TEST_F(CertaintyCommandTest, TheSameSeedGivesTheSameIntervalsAndNoResamplesNone) {
  const std::string json = eval({"--json"}).out;
  EXPECT_EQ(eval({"--json"}).out, json);
  EXPECT_NE(eval({"--json", "--seed", "7"}).out, json);
  const std::string none = eval({"--resamples", "0"}).err;
  EXPECT_EQ(none.find("95 %"), std::string::npos) << none;
  EXPECT_EQ(run({"eval", "run", "--resamples", "-1"}, work_.path()).exit_code, 64);
}

TEST_F(CertaintyCommandTest, ARunAgainstItselfHasNoWinner) {
  const std::string printed = eval({"--against", "run"}).err;
  EXPECT_NE(printed.find("run against run, on the same 20 images"), std::string::npos) << printed;
  EXPECT_NE(printed.find("no significant difference: run minus run is 0.00 points (95 %: -"), std::string::npos)
      << printed;
  EXPECT_EQ(printed.find(" beats "), std::string::npos) << printed;
}

TEST_F(CertaintyCommandTest, FilesOfAnEvaluationAreShownInTheReport) {
  eval({"--output", "run/eval", "--against", "run/checkpoints/step-00000004"});
  EXPECT_NE(content_of_file(work_ / "run/eval/certainty.json").find("\"calibration\": {"), std::string::npos);
  EXPECT_EQ(lines_of(content_of_file(work_ / "run/eval/reliability.csv")).size(), 16u);
  const std::string page = content_of_file(work_ / "run/report.html");
  EXPECT_NE(page.find("Intervals and reliability"), std::string::npos);
  EXPECT_NE(page.find("Reliability"), std::string::npos);
  EXPECT_NE(page.find("on the same images"), std::string::npos);
}

TEST_F(CertaintyCommandTest, ARunOfOtherClassesIsRefused) {
  const Workplace other;
  write_folders(other);
  ASSERT_EQ(run(train_words(), other.path()).exit_code, 0);
  const Ended ended = run({"eval", "run", "--against", other / "run"}, work_.path());
  EXPECT_EQ(ended.exit_code, 65) << ended.err;
}

}  // namespace
}  // namespace stoker::cli
