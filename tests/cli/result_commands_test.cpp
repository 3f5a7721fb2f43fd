// SPDX-License-Identifier: Apache-2.0
// `train eval` and `train predict` on a finished run: results alone on standard output, and the run
// untouched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "exit_codes.h"
#include "finished_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

class ResultCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    place_finished_run(work_);
    for (int i = 0; i < 5; ++i) {
      work_.write("images/" + std::to_string(i) + ".png", png_of(8, 8, static_cast<uint8_t>(40 * i)));
    }
    before_ = listing_of(work_ / "run");
  }
  void TearDown() override { EXPECT_EQ(listing_of(work_ / "run"), before_); }

  Ended succeed(Words words) {
    words.insert(words.end(), {"--threads", "1", "--num-workers", "1"});
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }

  const Workplace work_;
  std::string before_;
};

TEST_F(ResultCommandsTest, EvalWritesARowPerClassAndTheirAverage) {
  const Ended ended = succeed({"eval", "run"});
  const std::vector<std::string> lines = lines_of(ended.out);
  ASSERT_EQ(lines.size(), 12u) << ended.out;
  EXPECT_EQ(lines[0], "class,images,predicted,precision,recall,f1");
  EXPECT_EQ(lines[1].rfind("0,2,", 0), 0u) << lines[1];
  EXPECT_EQ(lines[11].rfind("macro average,20,20,", 0), 0u) << lines[11];
  EXPECT_NE(ended.err.find("images 20"), std::string::npos) << ended.err;
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=0 reason=evaluated update=", 0), 0u);
}

TEST_F(ResultCommandsTest, EvalTakesOtherSplitsAndCheckpoints) {
  EXPECT_NE(succeed({"eval", "run", "--split", "train"}).err.find("images 64"), std::string::npos);
  EXPECT_NE(without_result(last_line(succeed({"eval", "run", "--which", "last"}).err))
                .find("checkpoint=run/checkpoints/step-00000008"),
            std::string::npos);
  EXPECT_NE(without_result(last_line(succeed({"eval", "run/checkpoints/step-00000004"}).err))
                .find("update=4 checkpoint=run/checkpoints/step-00000004"),
            std::string::npos);
}

TEST_F(ResultCommandsTest, EvalIntoAFolderWritesItsTables) {
  succeed({"eval", "run", "--output", "results"});
  EXPECT_EQ(lines_of(content_of_file(work_ / "results/per_class.csv")).size(), 12u);
  EXPECT_EQ(lines_of(content_of_file(work_ / "results/confusion.csv")).size(), 11u);
}

TEST_F(ResultCommandsTest, PredictWritesARowPerImage) {
  const Ended ended = succeed({"predict", "run", "images"});
  const std::vector<std::string> lines = lines_of(ended.out);
  ASSERT_EQ(lines.size(), 6u) << ended.out;
  EXPECT_EQ(lines[0], "path,class,probability,error");
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].rfind("images/" + std::to_string(i - 1) + ".png,", 0), 0u) << lines[i];
  }
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=0 reason=predicted update=", 0), 0u);
}

TEST_F(ResultCommandsTest, PredictWritesTheSameToAFile) {
  const std::string shown = succeed({"predict", "run", "images", "--output", "-"}).out;
  EXPECT_EQ(succeed({"predict", "run", "images", "--output", "p.csv"}).out, "");
  EXPECT_EQ(content_of_file(work_ / "p.csv"), shown);
  EXPECT_EQ(succeed({"predict", "run", "images"}).out, shown);
}

TEST_F(ResultCommandsTest, ALinkToTheOpenOutputOrToAFileStaysOne) {
  const std::string shown = succeed({"predict", "run", "images"}).out;
  fs::create_symlink("/proc/self/fd/1", work_ / "out");
  fs::create_symlink("p.csv", work_ / "link.csv");
  for (const char* const path : {"out", "/dev/stdout"}) {
    const std::string command = "cd '" + work_.path() +
                                "' && '" STOKER_TRAIN_PROGRAM "' predict run images --quiet -o " + path +
                                " > rows.csv 2> /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << path;
    EXPECT_EQ(content_of_file(work_ / "rows.csv"), shown) << path;
  }
  succeed({"predict", "run", "images", "-o", "link.csv"});
  EXPECT_EQ(content_of_file(work_ / "p.csv"), shown);
  EXPECT_TRUE(fs::is_symlink(work_ / "out") && fs::is_symlink(work_ / "link.csv"));
}

TEST_F(ResultCommandsTest, EveryImageHasARowWhateverIsDoneWithBadOnes) {
  for (const char* const name : {"images/7.png", "images/8.png"}) work_.write(name, "");
  for (const char* const way : {"skip,1", "fail", "repair"}) {
    const Words words = {"predict", "run", "images", "--on-bad-image", way, "--threads", "1"};
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, kData) << story_of(words, ended);
    EXPECT_EQ(lines_of(ended.out).size(), 8u) << way << ended.out;
  }
}

TEST_F(ResultCommandsTest, PredictTakesOneImageAndAddsRawScores) {
  const std::vector<std::string> lines = lines_of(succeed({"predict", "run", "images/3.png", "--logits"}).out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), ','), 13) << lines[0];
  EXPECT_EQ(std::count(lines[1].begin(), lines[1].end(), ','), 13) << lines[1];
}

TEST_F(ResultCommandsTest, PredictLeavesBadImagesOutWhenAsked) {
  work_.write("images/9.png", "");
  const Ended ended = succeed({"predict", "run", "images", "--on-bad-image", "skip,1"});
  EXPECT_EQ(lines_of(ended.out).size(), 7u) << ended.out;
  EXPECT_EQ(lines_of(ended.out).back(), "images/9.png,,,empty file");
  EXPECT_NE(ended.err.find("images/9.png: empty file"), std::string::npos) << ended.err;
}

TEST_F(ResultCommandsTest, PredictGivesABrokenOrMissingImageARowAndEndsWith65AfterAll) {
  work_.write("images/2.png", png_of(8, 8, 40).substr(0, 45));
  work_.write("list.txt", "images/0.png\nnowhere.png\nimages/1.png\nimages/2.png\nimages/3.png\n");
  for (const std::string output : {"-", "p.csv"}) {
    const Words words = {"predict",       "run", "@list.txt",        "-o", output, "--threads", "1",
                         "--num-workers", "2",   "--val-batch-size", "2"};
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 65) << story_of(words, ended);
    EXPECT_NE(ended.err.find("2 of 5 images could not be read"), std::string::npos) << ended.err;
    const std::vector<std::string> lines = lines_of(output == "-" ? ended.out : content_of_file(work_ / output));
    ASSERT_EQ(lines.size(), 6u) << story_of(words, ended);
    EXPECT_EQ(lines[2], "nowhere.png,,,No such file or directory");
    EXPECT_EQ(lines[4].rfind("images/2.png,,,", 0), 0u) << lines[4];
    for (const size_t good : {1, 3, 5}) EXPECT_EQ(lines[good].back(), ',') << lines[good];
  }
  const std::string json = run(Words{"predict", "run", "@list.txt", "--json"}, work_.path()).out;
  EXPECT_NE(json.find("{\"path\": \"nowhere.png\", \"class\": null, \"probability\": null, \"error\": \"No such"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("\"error\": null}"), std::string::npos) << json;
}

TEST_F(ResultCommandsTest, PredictGivesWhatItMayNotReadARowAndAFolderWithoutImagesToo) {
  fs::permissions(work_ / "images/2.png", fs::perms::none);
  fs::create_directory(work_ / "empty");
  Launch launch;
  launch.words = {"predict", "run", "images/1.png", "images/2.png", "empty", "images/3.png", "--num-workers", "1"};
  launch.directory = work_.path();
  launch.unprivileged = true;
  fs::permissions(work_.path(), fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  const Ended ended = run(launch);
  if (ended.exit_code == kCannotStart) GTEST_SKIP() << "the program cannot be started without privileges from here";
  EXPECT_EQ(ended.exit_code, kData) << story_of(launch.words, ended);
  const std::vector<std::string> lines = lines_of(ended.out);
  ASSERT_EQ(lines.size(), 5u) << story_of(launch.words, ended);
  EXPECT_EQ(lines[2], "images/2.png,,,Permission denied");
  EXPECT_EQ(lines[3], "empty,,,it is a directory");
  EXPECT_EQ(lines[4].back(), ',') << lines[4];
}

TEST_F(ResultCommandsTest, PredictEndsWithItsReaderAndBeginsNothingThatCannotBeWritten) {
  work_.write("images/4.png", "");  // 65 would show that it was read
  Launch launch;
  launch.words = {"predict", "run", "images", "--num-workers", "1", "--val-batch-size", "1"};
  launch.directory = work_.path();
  launch.standard_output = Stream::broken_pipe;
  const Ended gone = run(launch);
  EXPECT_EQ(gone.exit_code, 0) << story_of(launch.words, gone);
  EXPECT_EQ(gone.err.find("4.png"), std::string::npos) << gone.err;
  const struct {
    const char* output;
    const char* cause;
  } rows[] = {{"images", "cannot create images: it is a folder"},
              {"nowhere/p.csv", "cannot create nowhere/p.csv: No such file or directory"}};
  for (const auto& row : rows) {
    const Words words = {"predict", "run", "images", "-o", row.output, "--num-workers", "1"};
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, kCannotCreate) << story_of(words, ended);
    EXPECT_NE(ended.err.find(row.cause), std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find("bad image"), std::string::npos) << "images were read: " << ended.err;
  }
}

TEST_F(ResultCommandsTest, WhatIsMissingOfTheSystemIsNamed) {
  Launch no_temporaries;
  no_temporaries.words = {"export", "run", "--check", "-o", "x.onnx"};
  no_temporaries.directory = work_.path();
  no_temporaries.variables = {"TMPDIR=/nowhere"};
  const Ended first = run(no_temporaries);
  EXPECT_EQ(first.exit_code, kCannotCreate) << story_of(no_temporaries.words, first);
  EXPECT_NE(first.err.find("temporary files cannot be written: /nowhere is not a folder"), std::string::npos)
      << first.err;
  EXPECT_NE(first.err.find("hint: set TMPDIR to"), std::string::npos) << first.err;
  no_temporaries.variables = {"TMPDIR="};
  no_temporaries.words = {"export", "run", "--format", "safetensors", "-o", "-"};
  const Ended unset = run(no_temporaries);
  EXPECT_EQ(unset.exit_code, 0) << "an empty one is as none: " << unset.err;
  Launch no_proc;
  no_proc.words = {"eval", "run"};
  no_proc.directory = work_.path();
  no_proc.small_disk = "/proc";  // an empty one
  const Ended second = run(no_proc);
  if (second.exit_code == kCannotStart) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(second.exit_code, kOs) << story_of(no_proc.words, second);
  EXPECT_NE(second.err.find("/proc/self/exe cannot be read\nhint: mount /proc"), std::string::npos) << second.err;
}

/// One process is killed while it writes; what it left goes when the command runs again.
TEST_F(ResultCommandsTest, PredictThatWasKilledLeavesNothingBehindTheNextOne) {
  work_.write("p.csv.tmp-999999", "half of a");  // no process has this number
  succeed({"predict", "run", "images", "-o", "p.csv"});
  EXPECT_FALSE(fs::exists(work_ / "p.csv.tmp-999999"));
  EXPECT_EQ(lines_of(content_of_file(work_ / "p.csv")).size(), 6u);
}

TEST_F(ResultCommandsTest, PredictWithoutOneGoodImageIsAnError) {
  for (int i = 0; i < 5; ++i) work_.write("images/" + std::to_string(i) + ".png", "");
  const Words words = {"predict", "run",       "images", "--output",      "p.csv", "--on-bad-image",
                       "skip,5",  "--threads", "1",      "--num-workers", "1"};
  const Ended ended = run(words, work_.path());
  EXPECT_EQ(ended.exit_code, 65) << story_of(words, ended);
  EXPECT_NE(ended.err.find("none of the 5 images of images could be read"), std::string::npos) << ended.err;
  EXPECT_EQ(lines_of(content_of_file(work_ / "p.csv")).size(), 6u) << "its rows have the reasons";
}

/// Number `column` of a line of CSV.
std::string field_of(const std::string& line, int column) {
  size_t begin = 0;
  for (int i = 0; i < column; ++i) begin = line.find(',', begin) + 1;
  return line.substr(begin, line.find(',', begin) - begin);
}

/// A run on images whose left side differs from their right one, judged with mirror images; none of its own.
class TestTimeAugmentationTest : public ::testing::Test {
 protected:
  TestTimeAugmentationTest() {
    for (const std::string split : {"train", "val"}) {
      for (int i = 0; i < 16; ++i) {
        work_.write("data/" + split + (i % 2 ? "/cat/" : "/dog/") + std::to_string(i) + ".jpg",
                    jpeg_of(8, 8, static_cast<uint8_t>(15 * i)));
      }
    }
    const Words words = train_words({"--tta", "hflip", "--hflip", "0", "--epochs", "8", "--batch-size", "8"});
    EXPECT_EQ(run(words, work_.path()).exit_code, 0);
  }

  Ended succeed(Words words) {
    words.insert(words.end(), {"--threads", "1", "--num-workers", "1"});
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }
  double loss_of(const Words& words) {
    const std::string output = succeed(words).err;
    return std::strtod(output.substr(output.find("loss ") + 5).c_str(), nullptr);
  }
  /// Path and logit of the first class, of all images.
  std::vector<std::string> logits_of_prediction(const std::string& tta) {
    std::vector<std::string> logits;
    for (const std::string& line : lines_of(succeed({"predict", "run", "data/val", "--logits", "--tta", tta}).out)) {
      logits.push_back(field_of(line, 0) + " " + field_of(line, 3));
    }
    return logits;
  }
  std::vector<std::string> logits_of_evaluation(const std::string& tta) {
    succeed({"eval", "run", "--logits", "--output", tta, "--tta", tta});
    std::vector<std::string> logits;
    for (const std::string& line : lines_of(content_of_file(work_ / (tta + "/images.csv")))) {
      logits.push_back(field_of(line, 0) + " " + field_of(line, 4));
    }
    return logits;
  }

  const Workplace work_;
};

TEST_F(TestTimeAugmentationTest, EvalJudgesAsValidationDidUnlessAFlagChangesIt) {
  const double validated =
      std::strtod(field_of(lines_of(content_of_file(work_ / "run/summary.csv")).back(), 2).c_str(), nullptr);
  EXPECT_NEAR(loss_of({"eval", "run", "--which", "last"}), validated, 1e-4);
  EXPECT_NEAR(loss_of({"eval", "run", "--which", "last", "--tta", "hflip"}), validated, 1e-4);
  EXPECT_GT(std::abs(loss_of({"eval", "run", "--which", "last", "--tta", "none"}) - validated), 0.01);
}

TEST_F(TestTimeAugmentationTest, PredictPrintsWhatEvalJudges) {
  std::set<std::vector<std::string>> others;
  for (const std::string tta : {"none", "hflip", "ten-crop", "scales"}) {
    const std::vector<std::string> logits = logits_of_prediction(tta);
    EXPECT_EQ(logits, logits_of_evaluation(tta)) << tta;
    others.insert(logits);
  }
  EXPECT_EQ(others.size(), 4u);
}

TEST_F(TestTimeAugmentationTest, ARunGoesOnWithoutIt) {
  const Words words = train_words({"--epochs", "2", "--run-dir", "part"});
  Words first = words;
  first.insert(first.end(), {"--tta", "hflip", "--max-updates", "1"});
  EXPECT_EQ(run(first, work_.path()).exit_code, 0);
  const Ended resumed = run(words, work_.path());
  EXPECT_EQ(resumed.exit_code, 0) << story_of(words, resumed);
  EXPECT_NE(last_line(resumed.out + resumed.err).find("update=2"), std::string::npos) << story_of(words, resumed);
}

TEST_F(ResultCommandsTest, PrintConfigShowsTheRunsOptions) {
  const Ended ended = succeed({"eval", "run", "--print-config"});
  EXPECT_NE(ended.out.find("width: 8"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("class,images"), std::string::npos);
}

}  // namespace
}  // namespace stoker::cli
