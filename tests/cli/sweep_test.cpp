// SPDX-License-Identifier: Apache-2.0
// `train sweep`: runs for combinations of values, seeds and folds, and one table however often it was killed.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include "exit_codes.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

Words sweep_words(const std::string& folder, const Words& more) {
  Words words = {"sweep",    folder, "--data-dir", "data", "--model",       "small_cnn", "--width",      "8",
                 "--epochs", "2",    "--threads",  "1",    "--num-workers", "1",         "--batch-size", "16",
                 "--device", "cpu",  "--no-amp"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> fields_of_row(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream stream(row);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

class SweepTest : public ::testing::Test {
 protected:
  void SetUp() override { write_idx(work_); }
  std::string table_of(const std::string& folder) const { return content_of_file(work_ / (folder + "/sweep.csv")); }

  const Workplace work_;
};

TEST_F(SweepTest, EachPartIsARunAndTheSameCommandFindsAllFinished) {
  const Words words = sweep_words("s", {"--over", "lr=0.1,0.001", "--over", "opt=sgd,adamw", "--seeds", "2"});
  const Ended ended = run(words, work_.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  const std::vector<std::string> rows = lines_of(table_of("s"));
  ASSERT_EQ(rows.size(), 5u) << table_of("s");
  EXPECT_EQ(rows[0].rfind("rank,lr,opt,runs,failed,metric,mean,low,high,", 0), 0u) << rows[0];
  EXPECT_NE(ended.out.find("the best two"), std::string::npos) << ended.out;
  EXPECT_TRUE(fs::exists(work_ / "s/lr=0.1_opt=sgd_seed=42/checkpoints/last"));
  const Ended listed = run({"runs", "s"}, work_.path());
  for (const char* const name : {"s/lr=0.1_opt=sgd_seed=42", "s/lr=0.001_opt=adamw_seed=43"}) {
    EXPECT_NE(listed.out.find(name), std::string::npos) << listed.out;
  }
  const std::string before = table_of("s");
  const Ended again = run(words, work_.path());
  EXPECT_EQ(again.exit_code, 0) << story_of(words, again);
  EXPECT_EQ(again.err.find("run 1 of 8"), std::string::npos) << again.err;
  EXPECT_EQ(again.out, ended.out);
  EXPECT_EQ(table_of("s"), before);
}

TEST_F(SweepTest, HalvingLeavesTheBestAndItsRunIsThatOfAnUnhalvedOne) {
  const Words more = {"--over", "lr=1e-7,0.1,1e-6,0.03,1e-5", "--epochs", "4"};
  Words halved = sweep_words("h", more);
  halved.insert(halved.end(), {"--halve", "2"});
  const auto start = [&] {
    Launch launch;
    launch.words = halved;
    launch.directory = work_.path();
    return std::make_unique<Program>(launch);
  };
  for (const int milliseconds : {900, 2000}) {
    const auto killed = start(), stopped = start();
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    killed->send(SIGKILL);
    stopped->send(SIGTERM);
    stopped->wait();
    killed->wait();
  }
  const Ended ended = run(halved, work_.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(halved, ended);
  EXPECT_NE(ended.out.find("halving: 5 combinations for 1/4 of the updates, 3 for 1/2 of the updates, 2 to the end"),
            std::string::npos)
      << ended.out;
  const std::vector<std::string> rungs = lines_of(content_of_file(work_ / "h/halving.csv"));
  ASSERT_EQ(rungs.size(), 9u);
  EXPECT_EQ(rungs[0], "rung,share_of_updates,lr,mean,advances");
  for (const size_t row : {1u, 2u, 3u, 6u, 7u}) EXPECT_EQ(rungs[row].back(), '1') << rungs[row];
  for (const size_t row : {4u, 5u, 8u}) EXPECT_EQ(rungs[row].back(), '0') << rungs[row];
  const std::vector<std::string> rows = lines_of(table_of("h"));
  EXPECT_EQ(rows.size(), 3u) << table_of("h");
  const Words unbroken = [&] {
    Words words = sweep_words("u", more);
    words.insert(words.end(), {"--halve", "2"});
    return words;
  }();
  ASSERT_EQ(run(unbroken, work_.path()).exit_code, 0);
  EXPECT_EQ(content_of_file(work_ / "u/halving.csv"), content_of_file(work_ / "h/halving.csv"));
  EXPECT_EQ(table_of("u"), table_of("h"));
  const std::string best = fields_of_row(rows[1]).at(1);
  Words plain = sweep_words("p", {"--over", "lr=" + best, "--epochs", "4"});
  ASSERT_EQ(run(plain, work_.path()).exit_code, 0);
  EXPECT_EQ(fields_of_row(lines_of(table_of("p"))[1]).at(5), fields_of_row(rows[1]).at(5));
  const auto weights = [&](const std::string& folder) {
    return content_of_file(work_ / (folder + "/lr=" + best + "_seed=42/checkpoints/last/model.safetensors"));
  };
  EXPECT_TRUE(weights("p") == weights("h"));
}

TEST_F(SweepTest, KilledAndStoppedAndSharedItEndsWithTheTableOfAnUnbrokenOne) {
  const Words more = {"--over", "lr=0.1,0.03", "--folds", "2", "--epochs", "12"};
  const Words whole = sweep_words("whole", more), broken = sweep_words("broken", more);
  const Ended unbroken = run(whole, work_.path());
  ASSERT_EQ(unbroken.exit_code, 0) << story_of(whole, unbroken);
  const auto start = [&] {
    Launch launch;
    launch.words = broken;
    launch.directory = work_.path();
    return std::make_unique<Program>(launch);
  };
  for (const int milliseconds : {700, 1500, 400, 2500}) {
    const auto one = start(), other = start();
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    one->send(SIGKILL);
    other->send(SIGTERM);
    const Ended stopped = other->wait();
    const bool had_begun = stopped.signal == 0;  // to take signals
    EXPECT_TRUE(!had_begun || stopped.exit_code == kStopped || stopped.exit_code == 0) << story_of(broken, stopped);
    one->wait();
  }
  const auto one = start(), other = start();
  for (Program* const program : {one.get(), other.get()}) {
    const Ended ended = program->wait();
    EXPECT_EQ(ended.exit_code, 0) << story_of(broken, ended);
    EXPECT_EQ(ended.out, unbroken.out);
  }
  EXPECT_EQ(table_of("broken"), table_of("whole"));
}

TEST_F(SweepTest, FoldsPoolThePredictionsOfAllImages) {
  const Words words = sweep_words("s", {"--folds", "3", "--seeds", "2", "--group", "#([0-9]?)[0-9]$"});
  const Ended ended = run(words, work_.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  int64_t right = 0, images = 0;
  std::set<std::string> seen;
  for (const char* const part : {"s/seed=42_fold=1of3", "s/seed=42_fold=2of3", "s/seed=42_fold=3of3",
                                 "s/seed=43_fold=1of3", "s/seed=43_fold=2of3", "s/seed=43_fold=3of3"}) {
    for (const std::string& row : lines_of(content_of_file(work_ / (std::string(part) + "/fold/images.csv")))) {
      if (row.rfind("path,", 0) == 0) continue;
      const std::vector<std::string> cells = fields_of_row(row);
      right += cells[1] == cells[2] ? 1 : 0;
      ++images;
      seen.insert(cells[0]);
    }
  }
  EXPECT_EQ(images, 128);
  EXPECT_EQ(seen.size(), 64u) << "each image is in one fold of each seed";
  const std::vector<std::string> header = fields_of_row(lines_of(table_of("s"))[0]),
                                 row = fields_of_row(lines_of(table_of("s"))[1]);
  const auto pooled = std::find(header.begin(), header.end(), "pooled") - header.begin();
  EXPECT_NEAR(std::stod(row.at(static_cast<size_t>(pooled))), 100.0 * static_cast<double>(right) / 128, 1e-3);
  EXPECT_EQ(row.at(static_cast<size_t>(pooled) + 3), "64");
  int64_t all = 0, diagonal = 0;
  const std::vector<std::string> matrix = lines_of(content_of_file(work_ / "s/confusion.csv"));
  for (size_t i = 1; i < matrix.size(); ++i) {
    const std::vector<std::string> cells = fields_of_row(matrix[i]);
    for (size_t k = 1; k < cells.size(); ++k) all += std::stoll(cells[k]);
    diagonal += std::stoll(cells[i]);
  }
  EXPECT_EQ(all, 128);
  EXPECT_EQ(diagonal, right);
  EXPECT_NE(content_of_file(work_ / "s/pooled.csv").find("64,kappa,"), std::string::npos);
}

TEST_F(SweepTest, WhatItCannotTryIsNamed) {
  const struct {
    Words more;
    int exit_code;
    std::string part;
  } cases[] = {{{"--over", "lr"}, kUsage, "no option with values"},
               {{"--over", "lrr=1"}, kUsage, "there is no such option"},
               {{"--over", "lr=0.1,fast"}, kUsage, "fast"},
               {{"--over", "lr=0.1,0.1"}, kUsage, "twice"},
               {{"--over", "lr=0.1..1"}, kUsage, "--random"},
               {{"--over", "seed=1,2"}, kUsage, "--seeds"},
               {{"--over", "run-dir=a,b"}, kUsage, "its own"},
               {{"--over", "lr=0.1", "--run-dir", "x"}, kConfig, "run-dir"},
               {{"--over", "lr=0.1,0.2", "--halve", "3"}, kConfig, "there are 2 combinations"},
               {{"--over", "lr=0.1,0.2", "--halve", "2", "--max-updates", "9"}, kConfig, "both stop runs"},
               {{"--folds", "2", "--val-fraction", "0.1"}, kConfig, "val-fraction"},
               {{"--val-split", "fold:3/2", "--over", "lr=0.1"}, kConfig, "is not a valid fold"}};
  for (const auto& [more, exit_code, part] : cases) {
    const Words words = sweep_words("s", more);
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, exit_code) << story_of(words, ended);
    EXPECT_NE(ended.err.find(part), std::string::npos) << story_of(words, ended);
  }
}

TEST_F(SweepTest, DrawsAreTheSameEachTimeAndThoseOfMoreBeginWithThoseOfFewer) {
  const auto drawn = [&](const std::string& count) {
    const Words words =
        sweep_words("s", {"--over", "lr=1e-4..1", "--over", "opt=sgd,adamw", "--random", count, "--dry-run"});
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended.out;
  };
  const std::string four = drawn("4"), six = drawn("6");
  EXPECT_EQ(lines_of(four).size(), 4u) << four;
  EXPECT_EQ(six.rfind(four, 0), 0u) << six;
  EXPECT_EQ(four, drawn("4"));
}

}  // namespace
}  // namespace stoker::cli
