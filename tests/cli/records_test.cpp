// SPDX-License-Identifier: Apache-2.0
// What a run leaves for people to look at: event files and pages.
#include <gtest/gtest.h>

#include <filesystem>

#include "finished_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

TEST(RecordsTest, AResumedRunHasASecondEventFileAndAPage) {
  const Workplace work;
  write_idx(work);
  const Words first = train_words({"--epochs", "2", "--max-updates", "5", "--tensorboard"});
  ASSERT_EQ(run(first, work.path()).exit_code, 0);
  const Words second = train_words({"--epochs", "2", "--tensorboard", "--report"});
  const Ended ended = run(second, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(second, ended);
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(work / "run/tensorboard")) {
    EXPECT_EQ(entry.path().filename().string().rfind("events.out.tfevents.", 0), 0u);
    ++files;
  }
  EXPECT_EQ(files, 2u);
  EXPECT_NE(content_of_file(work / "run/report.html").find("finished (epochs-done)"), std::string::npos);
}

TEST(RecordsTest, APageComparesSeveralRuns) {
  const Workplace work;
  place_finished_run(work);
  fs::copy(work / "run", work / "other", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const Words words = {"report", "run", "other/"};
  const Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  EXPECT_EQ(ended.out, "written: report.html\n");
  const std::string page = content_of_file(work / "report.html");
  EXPECT_NE(page.find("<title>2 runs"), std::string::npos);
  EXPECT_NE(page.find("All options are the same."), std::string::npos);
  const Ended one = run({"report", "run", "-o", "-"}, work.path());
  EXPECT_EQ(one.out.rfind("<!doctype html>", 0), 0u);
  EXPECT_FALSE(fs::exists(work / "run/report.html"));
}

TEST(RecordsTest, APageOfNoRunIsMissingInput) {
  const Workplace work;
  EXPECT_EQ(run({"report", "nowhere"}, work.path()).exit_code, 66);
  EXPECT_EQ(run({"report"}, work.path()).exit_code, 64);
}

TEST(CheckTest, MeasuresAllThatIsThereAndEndsWith69ForWhatIsNot) {
  const Workplace work;
  Launch launch;
  launch.words = {"check", "--json", "--device", "cuda:5", "--data-dir", "nowhere", "--threads", "1"};
  launch.directory = work.path();
  launch.variables = {"LD_LIBRARY_PATH=" STOKER_FAKE_NVML_FOLDER};
  const Ended ended = run(launch);
  SCOPED_TRACE(story_of(launch.words, ended));
  EXPECT_EQ(ended.exit_code, 69);
  EXPECT_EQ(last_line(ended.err), "train: exit=69 reason=missing");
  for (const char* const part : {"\"driver\": \"535.183.01\"", "\"NVIDIA Fake 24GB\"", "\"operation\": \"convolution\"",
                                 "\"storage\": null", "\"advice\": [", "device cuda:5 was asked for", "nowhere"}) {
    EXPECT_NE(ended.out.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace stoker::cli
