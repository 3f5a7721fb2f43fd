// SPDX-License-Identifier: Apache-2.0
// `train eval` and `train predict` by several processes write the bytes that one process writes.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "exit_codes.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

/// A run trained to separate dark from bright images, and some images to predict.
class EvaluationDevicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string table = "path,label\n";
    for (int i = 0; i < 23; ++i) {
      const std::string name = "images/" + std::to_string(i) + ".png";
      work_.write("data/" + name, png_of(8, 8, static_cast<uint8_t>(11 * i)));
      table += name + "," + (i * 7 % 23 < 11 ? "no" : "yes") + "\n";
    }
    work_.write("data/train.csv", table);
    work_.write("data/val.csv", table);
    const Words words = train_words(
        {"--task", "binary", "--batch-size", "8", "--epochs", "2", "--lr", "0.05", "--train-crop", "padded"});
    const Ended ended = run(words, work_.path());
    ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  }

  Ended ask(Words words, int devices, const Words& more = {}) {
    words.insert(words.end(), {"--threads", "1", "--num-workers", "1", "--val-batch-size", "3", "--devices",
                               std::to_string(devices)});
    words.insert(words.end(), more.begin(), more.end());
    Ended ended = run(words, work_.path());
    story_ = story_of(words, ended);
    return ended;
  }

  const Workplace work_;
  std::string story_;
};

TEST_F(EvaluationDevicesTest, EvalWritesTheSameBytesAndFigures) {
  std::string wanted_files, wanted_figures;
  for (const int devices : {1, 2, 4, 9}) {  // of 8 batches
    std::filesystem::remove_all(work_ / "results");
    const Ended ended = ask({"eval", "run"}, devices, {"--output", "results", "--logits"});
    ASSERT_EQ(ended.exit_code, 0) << story_;
    EXPECT_EQ(last_line(ended.err).rfind("train: exit=0 reason=evaluated update=6 ", 0), 0u) << story_;
    const size_t begin = ended.err.find("images 23  loss ");
    ASSERT_NE(begin, std::string::npos) << story_;
    EXPECT_EQ(ended.err.find("images 23  loss ", begin + 1), std::string::npos) << "one process prints it: " << story_;
    const std::string figures = ended.err.substr(begin, ended.err.find('\n', begin) - begin);
    EXPECT_NE(figures.find("roc_auc 0."), std::string::npos) << figures;
    const std::string files = listing_of(work_ / "results");
    if (devices == 1) {
      wanted_files = files;
      wanted_figures = figures;
    }
    EXPECT_EQ(files, wanted_files) << devices;
    EXPECT_EQ(figures, wanted_figures) << devices;
  }
}

TEST_F(EvaluationDevicesTest, PredictWritesTheSameBytesAndNamesEveryBadImage) {
  for (const char* const name : {"04", "11", "20"}) {  // batches of different processes
    work_.write("data/images/" + std::string(name) + "-torn.png", "\x89PNG\r\n\x1a\n and no more");
  }
  std::string wanted;
  for (const int devices : {1, 2, 4}) {
    const Ended ended = ask({"predict", "run", "data/images"}, devices, {"--on-bad-image", "skip,3"});
    ASSERT_EQ(ended.exit_code, 0) << story_;
    EXPECT_EQ(lines_of(ended.out).size(), 27u) << story_;
    if (devices == 1) wanted = ended.out;
    EXPECT_EQ(ended.out, wanted) << devices;
    EXPECT_NE(ended.err.find("bad images left out: 3"), std::string::npos) << story_;
    for (const char* const name : {"04", "11", "20"}) {
      EXPECT_NE(ended.err.find(std::string(name) + "-torn.png: "), std::string::npos) << story_;
    }
  }
}

TEST_F(EvaluationDevicesTest, BadImagesOfAllProcessesCountTogether) {
  for (const char* const name : {"04", "20"}) {
    work_.write("data/images/" + std::string(name) + "-torn.png", "\x89PNG\r\n\x1a\n and no more");
  }
  for (const int devices : {1, 4}) {
    const Ended ended = ask({"predict", "run", "data/images"}, devices, {"--on-bad-image", "skip,1"});
    EXPECT_EQ(ended.exit_code, kData) << story_;
    EXPECT_NE(ended.err.find("2 of 25 images could not be read"), std::string::npos) << story_;
    EXPECT_EQ(lines_of(ended.out).size(), 26u) << "after all rows: " << story_;
  }
}

TEST_F(EvaluationDevicesTest, ABadImageOfOneProcessEndsAllWithItsCodeAndMessageAfterAllRows) {
  work_.write("data/images/99-torn.png", "\x89PNG\r\n\x1a\n and no more");
  const Ended ended = ask({"predict", "run", "data/images"}, 4);
  EXPECT_EQ(ended.exit_code, kData) << story_;
  EXPECT_NE(ended.err.find("99-torn.png"), std::string::npos) << story_;
  EXPECT_EQ(last_line(ended.err), "train: exit=65 reason=error") << story_;
  EXPECT_EQ(lines_of(ended.out).size(), 25u) << story_;
}

TEST_F(EvaluationDevicesTest, AComparisonIsTheSameToo) {
  const Words words = train_words({"--task", "binary", "--batch-size", "8", "--epochs", "1", "--run-dir", "other"});
  ASSERT_EQ(run(words, work_.path()).exit_code, 0);
  std::string wanted;
  for (const int devices : {1, 3}) {
    const Ended ended = ask({"eval", "run"}, devices, {"--against", "other", "--json", "--resamples", "50"});
    ASSERT_EQ(ended.exit_code, 0) << story_;
    if (devices == 1) wanted = ended.out;
    EXPECT_NE(ended.out.find("other/checkpoints/step-"), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out, wanted);
  }
}

TEST_F(EvaluationDevicesTest, WhatAllProcessesRefuseIsPrintedOnce) {
  work_.write("data/val.csv", "path,label\nimages/0.png,neither\n");
  const Ended ended = ask({"eval", "run"}, 4);
  EXPECT_EQ(ended.exit_code, kData) << story_;
  EXPECT_NE(ended.err.find("error: "), std::string::npos) << story_;
  EXPECT_EQ(ended.err.find("error: "), ended.err.rfind("error: ")) << story_;
  EXPECT_EQ(ended.err.find("rank", ended.err.find("error: ")), std::string::npos) << story_;
}

/// `train eval` by two processes, of many images, so that it is under way for long.
Launch long_evaluation(const Workplace& work) {
  write_idx(work);
  EXPECT_EQ(run(train_words(), work.path()).exit_code, 0);
  work.write("data/big-images-idx3-ubyte", idx_images(200'000));
  work.write("data/big-labels-idx1-ubyte", idx_labels(200'000));
  Launch launch;
  launch.words = {"eval", "run", "--split", "big", "--threads", "1", "--num-workers", "1", "--devices", "2"};
  launch.directory = work.path();
  return launch;
}

/// Whether both processes compute: their loaders have workers.
bool is_under_way(const Program& program) {
  const std::vector<pid_t> ranks = children_of(program.pid());
  for (const pid_t rank : ranks) {
    bool has_worker = false;
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(rank) + "/task", gone)) {
      has_worker |= content_of_file(thread.path().string() + "/comm").rfind("loader", 0) == 0;
    }
    if (!has_worker) return false;
  }
  return ranks.size() == 2;
}

TEST(LongEvaluationDevicesTest, AStopEndsAllWithItsCodeAndWithoutHalfResults) {
  const Workplace work;
  Program program(long_evaluation(work));
  ASSERT_TRUE(program.wait_until([&] { return is_under_way(program); })) << program.err();
  program.send(SIGTERM);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kStopped) << ended.err;
  EXPECT_EQ(last_line(ended.err).rfind("train: exit=75 reason=signal:TERM", 0), 0u) << ended.err;
  EXPECT_EQ(ended.out, "");
}

TEST(LongEvaluationDevicesTest, AKilledProcessEndsAllWith76AndIsNamed) {
  const Workplace work;
  Program program(long_evaluation(work));
  ASSERT_TRUE(program.wait_until([&] { return is_under_way(program); })) << program.err();
  const pid_t killed = children_of(program.pid()).back();
  ::kill(killed, SIGKILL);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, 76) << ended.err;
  EXPECT_NE(ended.err.find("rank 1 (process " + std::to_string(killed) + ") was killed by signal 9"), std::string::npos)
      << ended.err;
  EXPECT_EQ(last_line(ended.err), "train: exit=76 reason=error") << ended.err;
  EXPECT_EQ(ended.out, "");
}

}  // namespace
}  // namespace stoker::cli
