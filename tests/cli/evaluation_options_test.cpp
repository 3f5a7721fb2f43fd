// SPDX-License-Identifier: Apache-2.0
// Options that do not fit the network or the data of `train eval` and `train predict`: each is resolved or refused with
// a sentence, and none of them reaches memory that is not theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "exit_codes.h"
#include "finished_run.h"

namespace stoker::cli {
namespace {

/// A finished run on gray images of 8 x 8 pixels in ten classes, and images to ask it about.
class EvaluationOptionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    place_finished_run(work_);
    for (int i = 0; i < 3; ++i) {
      work_.write("images/" + std::to_string(i) + ".png", png_of(8, 8, static_cast<uint8_t>(40 * i)));
    }
  }

  /// The command on the run with a file of options over the run's own.
  Ended evaluate(const std::string& command, const std::string& options, const Words& more = {}) const {
    work_.write("c.yaml", "log-level: info\n" + options);  // a file without any option is refused
    Words words = {command, "run", "-c", "c.yaml", "--threads", "1", "--num-workers", "1", "--device", "cpu"};
    if (command == "predict") words.insert(words.begin() + 2, "images");
    words.insert(words.end(), more.begin(), more.end());
    Ended ended = run(words, work_.path());
    story_ = story_of(words, ended) + "\n" + options;
    return ended;
  }

  /// Images to evaluate, in the folder `many`.
  void write_many(uint32_t images) const {
    work_.write("many/t10k-images-idx3-ubyte", idx_images(images));
    work_.write("many/t10k-labels-idx1-ubyte", idx_labels(images));
    work_.write("many/train-images-idx3-ubyte", idx_images(20));
    work_.write("many/train-labels-idx1-ubyte", idx_labels(20));
  }

  const Workplace work_;
  mutable std::string story_;
};

/// Bytes, as the machine and the control group see it.
double available_memory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name, unit;
  double kibibytes = 0;
  while (meminfo >> name >> kibibytes && name != "MemAvailable:") std::getline(meminfo, unit);
  double limit = 0;
  std::ifstream group("/sys/fs/cgroup/memory.max");
  const bool is_limited = static_cast<bool>(group >> limit);
  return is_limited ? std::min(limit, kibibytes * 1024) : kibibytes * 1024;
}

/// The names of the options that may be `auto`, from the reference of options.
std::vector<std::string> automatic_options(const std::string& markdown) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(markdown)) {
    const size_t begin = line.find("--"), help = line.find("` |", line.find(" | "));
    if (line.rfind("| `-", 0) != 0 || help == std::string::npos) continue;
    if (line.substr(0, help + 1).find("auto") == std::string::npos) continue;
    std::string name = line.substr(begin + 2, line.find_first_of(" `", begin) - begin - 2);
    if (name.rfind("[no-]", 0) == 0) name = name.substr(5);
    if (name != "auto-augment" && name != "auto-micro-batch") names.push_back(name);
  }
  return names;
}

TEST_F(EvaluationOptionsTest, MeansForOtherChannelsAreRefused) {
  for (const char* const command : {"eval", "predict"}) {
    const Ended ended = evaluate(command, "mean: [0.1, 0.2, 0.3]\nstd: [0.1, 0.2, 0.3]\n");
    EXPECT_EQ(ended.exit_code, kConfig) << story_;
    EXPECT_NE(ended.err.find("mean has 3 values, but in-chans is 1"), std::string::npos) << story_;
  }
}

TEST_F(EvaluationOptionsTest, AutomaticMeansAreThoseOfTheChannels) {
  const std::string given = evaluate("eval", "mean: [0.5]\nstd: [0.25]\n").out;
  const Ended ended = evaluate("eval", "mean: auto\nstd: auto\n");
  EXPECT_EQ(ended.exit_code, 0) << story_;
  EXPECT_EQ(ended.out, given) << story_;
}

TEST_F(EvaluationOptionsTest, AnAutomaticSizeIsThatOfTheImages) {
  const std::string given = evaluate("eval", "").out;
  const Ended ended = evaluate("eval", "", {"--img-size", "auto"});
  EXPECT_EQ(ended.exit_code, 0) << story_;
  EXPECT_EQ(ended.out, given) << story_;
}

TEST_F(EvaluationOptionsTest, AutomaticChannelsAreThoseOfTheNetwork) {
  std::filesystem::remove_all(work_ / "run");
  const Words words = train_words({"--in-chans", "3"});
  const Ended trained = run(words, work_.path());
  ASSERT_EQ(trained.exit_code, 0) << story_of(words, trained);
  const std::string given = evaluate("eval", "").out;
  const Ended ended = evaluate("eval", "in-chans: auto\n");
  EXPECT_EQ(ended.exit_code, 0) << story_;
  EXPECT_EQ(ended.out, given) << story_;
}

TEST_F(EvaluationOptionsTest, WhateverMayBeAutomaticIsResolvedOrRefused) {
  const std::vector<std::string> names =
      automatic_options(run({"list", "options", "--format", "markdown"}, work_.path()).out);
  EXPECT_GT(names.size(), 25u);
  std::string resolved;
  for (const std::string& name : names) {
    if (name == "device" || name == "threads") continue;  // given on the command line
    const Ended ended = evaluate("eval", name + ": auto\n");
    EXPECT_TRUE(ended.exit_code == 0 || ended.exit_code == kConfig) << story_;
    if (ended.exit_code == 0) resolved += name + ": auto\n";
  }
  EXPECT_EQ(evaluate("predict", resolved).exit_code, 0) << story_;
}

TEST_F(EvaluationOptionsTest, ValuesOfTheTrainingSplitMustBeGiven) {
  const Ended ended = evaluate("eval", "class-weights: auto\n");
  EXPECT_EQ(ended.exit_code, kConfig) << story_;
  EXPECT_NE(ended.err.find("class-weights: auto is measured on the training split"), std::string::npos) << story_;
}

TEST_F(EvaluationOptionsTest, BatchesBeyondTheMemoryAreRefusedWithThoseThatFit) {
  constexpr uint32_t kImages = 20'000;  // of 8192 x 8192 pixels: 5.4 TB of input
  write_many(kImages);
  const Ended ended = evaluate("eval", "img-size: 8192\nval-batch-size: 20000\ndata-dir: many\n");
  EXPECT_EQ(ended.exit_code, kOutOfMemory) << story_;
  EXPECT_NE(ended.err.find("the run would take"), std::string::npos) << story_;
  EXPECT_NE(ended.err.find("fit"), std::string::npos) << story_;
  EXPECT_NE(ended.err.find("use --no-plan-check to try anyway"), std::string::npos) << story_;
}

TEST_F(EvaluationOptionsTest, ActivationsBeyondTheMemoryAreRefusedWithABatchThatFits) {
  // The input alone takes a fifth of the memory, what the network makes of it ten times as much.
  const double memory = available_memory();
  constexpr double kInputBytes = 4.0 * 2048 * 2048;
  const auto images = static_cast<uint32_t>(memory / 5 / kInputBytes) + 1;
  write_many(images);
  const Ended ended =
      evaluate("eval", "img-size: 2048\ndata-dir: many\nval-batch-size: " + std::to_string(images) + "\n");
  EXPECT_EQ(ended.exit_code, kOutOfMemory) << story_;
  const std::string hint = "this fits: --val-batch-size ";
  const size_t at = ended.err.find(hint);
  ASSERT_NE(at, std::string::npos) << story_;
  EXPECT_LT(std::stod(ended.err.substr(at + hint.size())), images) << story_;
}

}  // namespace
}  // namespace stoker::cli
