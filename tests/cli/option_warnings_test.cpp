// SPDX-License-Identifier: Apache-2.0
// Warnings about options, and choices that depend on the data alone.
#include <gtest/gtest.h>

#include <filesystem>

#include "exit_codes.h"
#include "program.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

Ended train(const Workplace& work, const Words& more) {
  const Words words = train_words(more);
  Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  return ended;
}

bool warns(const Ended& ended, const std::string& part) { return ended.err.find(part) != std::string::npos; }

TEST(DoubtsTest, MeansOf255AndOptionsOfOtherDataAreWarnedOf) {
  const Workplace work;
  write_idx(work);
  const Ended suspicious = train(work, {"--mean", "127", "--std", "60", "--clip-frames", "4", "--csv-delimiter",
                                        "semicolon", "--hdf5", ",y", "--face-margin", "0.3", "--dry-run"});
  EXPECT_TRUE(warns(suspicious, "warning: mean and std look like numbers of 0 to 255")) << suspicious.err;
  EXPECT_TRUE(warns(suspicious, "--clip-frames has no effect")) << suspicious.err;
  EXPECT_TRUE(warns(suspicious, "--csv-delimiter has no effect: the data are no CSV file")) << suspicious.err;
  EXPECT_TRUE(warns(suspicious, "--hdf5 has no effect")) << suspicious.err;
  EXPECT_TRUE(warns(suspicious, "--face-margin has no effect")) << suspicious.err;
  const Ended sound = train(work, {"--mean", "0.5", "--dry-run"});
  EXPECT_FALSE(warns(sound, "look like numbers of 0 to 255") || warns(sound, "has no effect")) << sound.err;
}

TEST(DoubtsTest, TheConfigurationOfARunGivenBackRaisesNone) {
  const Workplace work;
  write_idx(work);
  train(work, {"--run-dir", "first", "--max-updates", "1"});
  const Words again = {"-c", "first/config.yaml", "--run-dir", "second", "--dry-run"};
  const Ended ended = run(again, work.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(again, ended);
  EXPECT_FALSE(warns(ended, "has no effect")) << ended.err;
}

TEST(DoubtsTest, ABatchBeyondTheDataIsWarnedOfAndDoesNotRaiseTheLearningRate) {
  const Workplace work;
  write_folders(work);
  const Ended ended = train(work, {"--batch-size", "4096", "--dry-run", "-v"});
  EXPECT_TRUE(warns(ended, "warning: --batch-size 4096 is more than the 8 training samples")) << ended.err;
  EXPECT_NE(ended.out.find("sgd lr 0.003125,"), std::string::npos) << "0.1 x 8 / 256\n" << ended.out;
}

TEST(DoubtsTest, ABestThatIsChosenOnTheTestSplitIsWarnedOf) {
  const Workplace work;
  write_folders(work);
  EXPECT_FALSE(warns(train(work, {"--batch-size", "4", "--dry-run"}), "no test result"));
  fs::rename(work / "data/val", work / "data/test");
  EXPECT_TRUE(warns(train(work, {"--batch-size", "4", "--dry-run"}), "chosen on split 'test'"));
  EXPECT_FALSE(warns(train(work, {"--batch-size", "4", "--dry-run", "--val-split", "test"}), "chosen on split"))
      << "it was requested";
}

TEST(DoubtsTest, RowsOfAClassifierFollowTheNamesOfClasses) {
  const Workplace work;
  write_folders(work);
  train(work, {"--batch-size", "4"});
  train(work, {"--batch-size", "4", "--task", "binary", "--run-dir", "two"});
  const auto rename = [&](const char* from, const char* to) {
    for (const std::string split : {"data/train/", "data/val/"}) fs::rename(work / (split + from), work / (split + to));
  };
  const auto start = [&](Words more) {
    more.insert(more.begin(), {"--batch-size", "4", "--run-dir", "next", "--dry-run", "--init-from"});
    return train(work, more).out;
  };
  const std::string other = "the classifier is of other classes in the file and is randomly initialised: ";
  EXPECT_EQ(start({"run"}).find("classifier"), std::string::npos) << "the same classes";
  EXPECT_NE(start({"run", "--fresh-head"}).find("randomly initialised (--fresh-head)"), std::string::npos);
  rename("dog", "ant");
  const std::string one_of_two = "classifier: 1 of 2 classes match by name and keep their weights";
  EXPECT_NE(start({"run"}).find(one_of_two), std::string::npos) << start({"run"});
  EXPECT_NE(start({"run/checkpoints/last/model.safetensors"}).find(one_of_two), std::string::npos);
  EXPECT_NE(start({"two", "--task", "binary"}).find(other), std::string::npos) << "one score for cat against dog";
  rename("cat", "bee");
  EXPECT_NE(start({"run"}).find(other), std::string::npos) << start({"run"});
}

TEST(DoubtsTest, AMetricThatASplitLeavesUndefinedIsSaidBeforeTraining) {
  const Workplace work;
  write_csv(work);
  const Words binary = {"--task", "binary", "--batch-size", "4", "--dry-run"};
  EXPECT_FALSE(warns(train(work, binary), "undefined"));
  work.write("data/val.csv", "path,label\nimages/0.png,0\nimages/2.png,0\n");
  EXPECT_TRUE(warns(
      train(work, binary),
      "warning: roc_auc and pr_auc are undefined, f1, recall, mcc and kappa are always 0 on this validation split: all "
      "its images"));
  const Ended refused = run(train_words({"--task", "binary", "--eval-metric", "roc_auc"}), work.path());
  EXPECT_EQ(refused.exit_code, kData);
  EXPECT_FALSE(warns(refused, "warning: roc_auc")) << "named once: " << refused.err;
}

TEST(DoubtsTest, AFreshClassifierWithoutStartingWeightsIsNoEffect) {
  const Workplace work;
  write_folders(work);
  const Words words = {"--batch-size", "4", "--dry-run"};
  EXPECT_FALSE(warns(train(work, words), "--fresh-head"));
  Words fresh = words;
  fresh.push_back("--fresh-head");
  EXPECT_TRUE(warns(train(work, fresh), "warning: --fresh-head has no effect"));
}

TEST(DoubtsTest, ARelativePathOfAFileIsSaidWithThePlaceWhereItWasLookedFor) {
  const Workplace work;
  work.write("conf/a.yaml", "data-dir: photos\nrun-dir: runs/a\nlog-file: runs/a/logs/a.log\n");
  const Ended ended = run({"-c", "conf/a.yaml"}, work.path());
  EXPECT_EQ(ended.exit_code, kNoInput) << ended.err;
  EXPECT_TRUE(warns(ended, "data-dir photos (conf/a.yaml:1) was looked for at ")) << ended.err;
  EXPECT_TRUE(warns(ended, "/photos: relative paths start where the program was started")) << ended.err;
  EXPECT_TRUE(fs::exists(work / "runs/a/logs/a.log"));
}

TEST(DoubtsTest, ImagesOfNumbersAreNotMirrored) {
  const Workplace work;
  write_csv(work);
  std::string table = "path,age\n";
  for (int i = 0; i < 8; ++i) table += "images/" + std::to_string(i) + ".png," + std::to_string(i) + "\n";
  for (const std::string split : {"train", "val"}) work.write("data/" + split + ".csv", table);
  const Words words = {"--task", "regression", "--batch-size", "4", "--print-config"};
  EXPECT_TRUE(train(work, words).out.find("\n  hflip: 0 ") != std::string::npos);
}

TEST(DoubtsTest, ThePackagedDataSetByItsPathIsWhatNoDataMeans) {
  constexpr const char* kFolder = "/usr/share/datasets/fashion-mnist";
  if (!fs::exists(kFolder)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const Workplace work;
  const auto config_of = [&](const Words& words) {
    std::string text;
    for (const std::string& line : lines_of(run(words, work.path()).out)) {
      const bool is_of_now = line.rfind("  cache-budget:", 0) == 0;  // free memory
      if (!is_of_now) text += line.substr(0, line.find(" #")) + "\n";
    }
    return text;
  };
  const std::string bare = config_of({"--print-config"});
  EXPECT_NE(bare.find("tiny_cnn"), std::string::npos) << bare;
  EXPECT_EQ(config_of({"--print-config", "--data-dir", kFolder}), bare);
}

}  // namespace
}  // namespace stoker::cli
