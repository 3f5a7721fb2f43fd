// SPDX-License-Identifier: Apache-2.0
// --stage-dir with loose images, through the program: the same run from copies, which go with it.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "exit_codes.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kReadFromFast[] = " are read from fast (";

class StagedFilesTest : public ::testing::Test {
 protected:
  StagedFilesTest() {
    fs::create_directories(work_ / "fast");
    write_folders(work_);
  }

  Ended finish(const Words& words) const {
    Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }
  static Words two_epochs(const std::string& run_dir, const Words& more) {
    Words words = train_words({"--epochs", "2", "--batch-size", "4", "--run-dir", run_dir, "--save-every", "1e"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string weights(const std::string& run_dir) const {
    std::string bytes = content_of_file(work_ / (run_dir + "/checkpoints/last/model.safetensors"));
    EXPECT_FALSE(bytes.empty());
    return bytes;
  }
  bool nothing_staged() const { return fs::is_empty(work_ / "fast"); }

  const Workplace work_;
};

TEST_F(StagedFilesTest, TheWeightsAreThoseWithoutCopies) {
  EXPECT_EQ(finish(two_epochs("plain", {"-v"})).out.find(kReadFromFast), std::string::npos);
  const Ended ended = finish(two_epochs("staged", {"-v", "--stage-dir", "fast"}));
  for (const std::string split : {"train", "val"}) {
    EXPECT_NE(ended.out.find(split + ": copies of 8 files in data/" + split + kReadFromFast), std::string::npos)
        << ended.out;
  }
  EXPECT_TRUE(weights("staged") == weights("plain"));
  EXPECT_TRUE(nothing_staged());
}

TEST_F(StagedFilesTest, ARunGoesOnWithCopiesAndWithout) {
  finish(two_epochs("run", {"--stage-dir", "fast"}));
  const std::string whole = weights("run");
  for (const std::string stage_dir : {"", "fast"}) {
    finish({"--resume", "run/checkpoints/step-00000002", "--stage-dir", stage_dir});
    EXPECT_TRUE(weights("run") == whole) << stage_dir;
  }
}

TEST_F(StagedFilesTest, ABadImageIsNamedAsItWasGiven) {
  work_.write("data/train/cat/1.png", std::string("no image"));
  const Words words = train_words({"--stage-dir", "fast"});
  const Ended ended = run(words, work_.path());
  EXPECT_EQ(ended.exit_code, kData) << story_of(words, ended);
  EXPECT_NE(ended.err.find("data/train/cat/1.png"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("stoker-stage"), std::string::npos) << ended.err;
  EXPECT_TRUE(nothing_staged());
}

TEST_F(StagedFilesTest, WithoutFreeSpaceNothingIsTrained) {
  work_.write("data/train/cat/1.png", std::string(200'000, 'x'));
  Launch launch{train_words({"--stage-dir", "fast"}), work_.path()};
  launch.small_disk = work_ / "fast";
  Program program(launch);
  const Ended ended = program.wait();
  if (ended.exit_code == kCannotStart) GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_EQ(ended.exit_code, kCannotCreate) << ended.err;
  EXPECT_NE(ended.err.find("fast has "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("8 files in data/train that have no copy there yet take "), std::string::npos) << ended.err;
}

TEST_F(StagedFilesTest, AStopRemovesTheCopiesAndAKilledRunLeavesThemToTheNext) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    Words words = train_words({"--stage-dir", "fast", "--epochs", "100000", "--run-dir", std::to_string(signal)});
    Program program({words, work_.path()});
    ASSERT_TRUE(program.wait_until([&] { return fs::exists(work_ / (std::to_string(signal) + "/metrics.jsonl")); }))
        << program.out() << program.err();
    EXPECT_FALSE(nothing_staged());
    program.send(signal);
    program.wait();
    EXPECT_EQ(nothing_staged(), signal == SIGTERM);
  }
  const Ended ended = finish(train_words({"--stage-dir", "fast", "-v"}));
  EXPECT_NE(ended.out.find(", 0 B of it copied in "), std::string::npos) << ended.out;
  EXPECT_TRUE(nothing_staged());
}

TEST_F(StagedFilesTest, EvaluationReadsCopiesAndPrintsTheSame) {
  finish(train_words());
  const Words plain = {"eval", "run", "--data-dir", "data", "--device", "cpu", "--output", "a"};
  finish(plain);
  Words staged = plain;
  staged.back() = "b";
  staged.insert(staged.end(), {"--stage-dir", "fast"});
  finish(staged);
  const std::string predictions = content_of_file(work_ / "a/images.csv");
  EXPECT_NE(predictions.find("data/val/"), std::string::npos) << predictions;
  EXPECT_EQ(content_of_file(work_ / "b/images.csv"), predictions);
  EXPECT_TRUE(nothing_staged());
}

}  // namespace
}  // namespace stoker::cli
