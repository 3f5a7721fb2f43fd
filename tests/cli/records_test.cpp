// SPDX-License-Identifier: Apache-2.0
// The records of a run: event files and pages.
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

TEST(RecordsTest, TheReportOfARunIsNotWrittenThroughALink) {
  const Workplace work;
  place_finished_run(work);
  work.write("elsewhere", "untouched");
  fs::create_symlink("../elsewhere", work / "run/report.html");
  EXPECT_EQ(run({"runs", "--html", "run"}, work.path()).exit_code, 0);
  EXPECT_EQ(content_of_file(work / "elsewhere"), "untouched");
  EXPECT_FALSE(fs::is_symlink(work / "run/report.html"));
  EXPECT_NE(content_of_file(work / "run/report.html").find("finished (epochs-done)"), std::string::npos);
}

TEST(RecordsTest, APageComparesSeveralRuns) {
  const Workplace work;
  place_finished_run(work);
  fs::copy(work / "run", work / "other", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const Words words = {"runs", "--html", "run", "other/"};
  const Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  EXPECT_EQ(ended.out, "written: report.html\n");
  const std::string page = content_of_file(work / "report.html");
  EXPECT_NE(page.find("<title>2 runs"), std::string::npos);
  EXPECT_NE(page.find("All options are the same."), std::string::npos);
  fs::create_directory(work / "all");
  fs::rename(work / "other", work / "all/other");
  fs::copy(work / "run", work / "all/deeper", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  EXPECT_EQ(run({"runs", "--html", "all"}, work.path()).exit_code, 0) << "a folder of runs";
  EXPECT_NE(content_of_file(work / "all/report.html").find("<title>2 runs"), std::string::npos);
  const Ended one = run({"runs", "--html", "run", "-o", "-"}, work.path());
  EXPECT_EQ(one.out.rfind("<!doctype html>", 0), 0u);
  EXPECT_FALSE(fs::exists(work / "run/report.html"));
}

TEST(RecordsTest, ARunReportsWhereItsTimeWentAndShowsItsWorstPictures) {
  const Workplace work;
  write_idx(work);
  const Words words = train_words({"--epochs", "2", "--report-every", "1u", "--report", "--val-batch-size", "8"});
  const Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  const std::string events = content_of_file(work / "run/metrics.jsonl");
  for (const char* const part :
       {R"("times":{"updates":)", R"("backward":{"mean_seconds":)", R"("queue":{"mean_batches":)",
        R"("cpu":{"training_seconds":)", R"("other_cpus":)", R"("diagnosis":)"}) {
    EXPECT_NE(events.find(part), std::string::npos) << part << " in " << events;
  }
  const std::string log = content_of_file(work / "run/train.log");
  EXPECT_NE(log.find("  step "), std::string::npos) << log;
  EXPECT_NE(log.find("forward "), std::string::npos) << log;
  const std::string page = content_of_file(work / "run/report.html");
  EXPECT_NE(page.find("src=\"data:image/jpeg;base64,/9j/"), std::string::npos);
  EXPECT_NE(page.find("Time per update"), std::string::npos);
  size_t pictures = 0;
  for (size_t at = page.find("<img"); at != std::string::npos; at = page.find("<img", at + 1)) ++pictures;
  EXPECT_EQ(pictures, 2 * 16u + 12u) << "the worst with their heat maps, and ordinary ones";
  for (const char* const outside : {"http:", "https:", "<script", "<link rel=\"stylesheet"}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
}

/// Every thread's spans nest; the parser is a few lines so that it proves what a viewer needs.
TEST(RecordsTest, AProfileHasTheLoadersThreadsAndTheTrainingThreadOnOneTimeLine) {
  const Workplace work;
  write_folders(work);
  const Words words = train_words({"--profile", "2u", "-j", "2", "--img-size", "16", "--batch-size", "2"});
  const Ended ended = run(words, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  const std::string profile = content_of_file(work / "run/profile.json");
  for (const char* const part :
       {"\"training\"", "\"loader-", "\"name\": \"update\"", "\"name\": \"wait\"", "\"name\": \"copy\"",
        "\"name\": \"forward\"", "\"name\": \"backward\"", "\"name\": \"optimizer\"", "\"name\": \"sample\"",
        "\"name\": \"read\"", "\"name\": \"decode\"", "\"spans_left_out\": 0"}) {
    EXPECT_NE(profile.find(part), std::string::npos) << part << " in " << profile.substr(0, 3000);
  }
  struct Span {
    std::string thread;
    double begin, end;
  };
  std::vector<Span> open;
  size_t spans = 0;
  for (const std::string& line : lines_of(profile)) {
    if (line.find("\"ph\": \"X\"") == std::string::npos) continue;
    const auto number = [&](const std::string& key) { return std::stod(line.substr(line.find(key) + key.size())); };
    const std::string thread = std::to_string(number("\"tid\": "));
    const double begin = number("\"ts\": "), end = begin + number("\"dur\": ");
    std::vector<Span> still;
    for (const Span& span : open) {
      if (span.end > begin + 0.002) still.push_back(span);
    }
    for (const Span& span : still) {
      if (span.thread != thread) continue;
      EXPECT_LE(end, span.end + 0.002) << line << " does not nest";
    }
    open = still;
    open.push_back({thread, begin, end});
    ++spans;
  }
  EXPECT_GE(spans, 20u);
  EXPECT_FALSE(std::filesystem::exists(work / "run/profile.json.tmp"));
}

TEST(RecordsTest, AProfileHasTheTimeOfEachOperatorAndChangesNoBit) {
  const Workplace work;
  write_folders(work);
  const Words plain = train_words({"--img-size", "16", "--batch-size", "2"});
  ASSERT_EQ(run(plain, work.path()).exit_code, 0);
  const std::string weights = content_of_file(work / "run/checkpoints/last/model.safetensors");
  EXPECT_FALSE(std::filesystem::exists(work / "run/operators.csv"));
  std::filesystem::remove_all(work / "run");
  const Ended ended = run(train_words({"--img-size", "16", "--batch-size", "2", "--profile", "3u"}), work.path());
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(content_of_file(work / "run/checkpoints/last/model.safetensors"), weights);
  const std::string table = content_of_file(work / "run/operators.csv");
  EXPECT_EQ(table.rfind("operator,calls,total_ms,own_ms,own_percent\n", 0), 0u) << table;
  for (const char* const name : {"\naten::convolution,", "\naten::convolution_backward,", "\n(no operator),1,",
                                 "\naten::cross_entropy_loss,", "\nstoker::sgd_step,"}) {
    EXPECT_NE(table.find(name), std::string::npos) << name << " in " << table;
  }
  double percent = 0;
  for (const std::string& line : lines_of(table)) {
    if (line.rfind("operator,", 0) != 0) percent += std::stod(line.substr(line.rfind(',') + 1));
  }
  EXPECT_NEAR(percent, 100, 0.1);
  EXPECT_NE(content_of_file(work / "run/operator_shapes.csv").find("operator,input_shapes,calls,"), std::string::npos);
  EXPECT_NE(content_of_file(work / "run/train.log").find("operators of an update of "), std::string::npos);
}

TEST(RecordsTest, CheckAndPreviewPrintTheirConfigurationLikeOtherCommands) {
  const Workplace work;
  write_idx(work);
  for (const char* const command : {"check", "preview"}) {
    const Words words = {command, "--data-dir", "data", "--threads", "1", "--print-config"};
    const Ended ended = run(words, work.path());
    SCOPED_TRACE(story_of(words, ended));
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_NE(ended.out.find("data-dir: "), std::string::npos);
    EXPECT_NE(ended.out.find("img-size: 8"), std::string::npos);
    EXPECT_EQ(ended.out.find("GFLOP"), std::string::npos);
    EXPECT_FALSE(fs::exists(work / "preview.png"));
  }
}

TEST(RecordsTest, APageOfNoRunIsMissingInput) {
  const Workplace work;
  EXPECT_EQ(run({"runs", "--html", "nowhere"}, work.path()).exit_code, 66);
  EXPECT_EQ(run({"runs", "--html"}, work.path()).exit_code, 66);
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
                                 "\"storage\": null", "\"advice\": [", "device cuda:5 was requested", "nowhere"}) {
    EXPECT_NE(ended.out.find(part), std::string::npos) << part;
  }
  EXPECT_NE(ended.err.find("; measuring the machine without it"), std::string::npos);
}

}  // namespace
}  // namespace stoker::cli
