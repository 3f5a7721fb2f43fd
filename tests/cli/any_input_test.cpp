// SPDX-License-Identifier: Apache-2.0
// `train eval` on labelled data wherever it lies, and `train predict` on inputs of every kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "exit_codes.h"
#include "program.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

class AnyInputTest : public ::testing::Test {
 protected:
  AnyInputTest() {
    write_folders(work_);
    static const Ended trained = [&] { return run(train_words({"--batch-size", "4"}), work_.path()); }();
    static const Workplace kept;
    if (!fs::exists(kept / "run")) copy_folder(work_ / "run", kept / "run");
    if (!fs::exists(work_ / "run")) copy_folder(kept / "run", work_ / "run");
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
  }
  Ended succeed(const Words& words) {
    Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended;
  }
  Ended fail(const Words& words, int exit_code) {
    Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, exit_code) << story_of(words, ended);
    return ended;
  }
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  const Workplace work_;
};

TEST_F(AnyInputTest, EvalTakesFoldersOfClassesOfSplitsAndCsvFiles) {
  const std::string own = succeed({"eval", "run"}).out;
  fs::create_directory(work_ / "other");
  copy_folder(work_ / "data/val", work_ / "other/val");
  copy_folder(work_ / "data/val", work_ / "classes");
  work_.write("list.csv",
              "path,label\ndata/val/cat/0.png,cat\ndata/val/cat/1.png,cat\ndata/val/cat/2.png,cat\n"
              "data/val/cat/3.png,cat\ndata/val/dog/0.png,dog\ndata/val/dog/1.png,dog\ndata/val/dog/2.png,dog\n"
              "data/val/dog/3.png,dog\n");
  for (const std::string data : {"other", "other/val", "classes", "classes/", "list.csv", "./list.csv"}) {
    EXPECT_EQ(succeed({"eval", "run", data}).out, own) << data;
  }
  for (const std::string data : {"other", "classes"}) {
    EXPECT_EQ(succeed({"eval", "run", "--data-dir", data}).out, own) << data << ": no training split is needed";
  }
  EXPECT_TRUE(contains(succeed({"eval", "run", "data", "--split", "train"}).err, "split 'train', data"));
}

TEST_F(AnyInputTest, EvalMatchesClassesByName) {
  fs::create_directories(work_ / "some/dog");
  fs::copy_file(work_ / "data/val/dog/0.png", work_ / "some/dog/0.png");
  const Ended some = succeed({"eval", "run", "some"});
  EXPECT_TRUE(contains(some.out, "\ndog,1,")) << "a class may be absent";
  EXPECT_TRUE(contains(some.err, "1 of 2 classes without samples here")) << some.err;
  fs::create_directories(work_ / "some/hog");
  fs::copy_file(work_ / "data/val/dog/0.png", work_ / "some/hog/0.png");
  EXPECT_TRUE(contains(fail({"eval", "run", "some"}, kData).err, "only here: hog"));
  work_.write("odd.csv", "path,label\ndata/val/dog/0.png,hog\n");
  EXPECT_TRUE(contains(fail({"eval", "run", "odd.csv"}, kData).err, "did you mean 'dog'?"));
  fail({"eval", "run", "nowhere"}, kNoInput);
  fail({"eval", "run", "data/val/dog/0.png"}, kData);
  fs::rename(work_ / "data/val", work_ / "val");
  EXPECT_TRUE(contains(fail({"eval", "run", "--data-dir", "data"}, kNoInput).err, "data has none of the splits val"));
}

TEST_F(AnyInputTest, PredictTakesFilesFoldersPatternsAndLists) {
  const auto rows = [](const Ended& ended) {
    std::vector<std::string> lines = lines_of(ended.out);
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  const std::vector<std::string> all = rows(succeed({"predict", "run", "data/val"}));
  ASSERT_EQ(all.size(), 9u);
  EXPECT_EQ(rows(succeed({"predict", "run", "data/val/cat", "data/val/dog"})), all);
  EXPECT_EQ(rows(succeed({"predict", "run", "data/val/*/*.png"})), all) << "quoted: the shell did not expand it";
  std::string list;
  for (const std::string name : {"cat", "dog"}) {
    for (int i = 0; i < 4; ++i) list += "data/val/" + name + "/" + std::to_string(i) + ".png\n";
  }
  work_.write("list.txt", list);
  EXPECT_EQ(rows(succeed({"predict", "run", "@list.txt"})), all);
  EXPECT_EQ(lines_of(succeed({"predict", "run", "data/val/cat/0.png", "data/val/dog/1.png"}).out).size(), 3u);
  fail({"predict", "run", "data/val/*.gif"}, kNoInput);
  fail({"predict", "run", "@nowhere.txt"}, kNoInput);
  fail({"predict", "run"}, kUsage);
}

TEST_F(AnyInputTest, PredictReadsShards) {
  succeed({"pack", "data", "packed"});
  EXPECT_EQ(lines_of(succeed({"predict", "run", "packed/val-000000.tar"}).out).size(), 9u);
  fail({"predict", "run", "packed/val-000000.tar", "data/val"}, kUsage);
}

TEST_F(AnyInputTest, PredictNamesSeveralClassesAllProbabilitiesOrJson) {
  const std::string image = "data/val/cat/0.png";
  EXPECT_EQ(lines_of(succeed({"predict", "run", image, "--top-k", "5"}).out)[0],
            "path,class,probability,class_2,probability_2,error");
  EXPECT_EQ(lines_of(succeed({"predict", "run", image, "--probabilities"}).out)[0],
            "path,class,probability,probability_cat,probability_dog,error");
  const std::string json = succeed({"predict", "run", image, "--json"}).out;
  EXPECT_EQ(json.rfind("{\"path\": \"" + image + "\", \"class\": \"", 0), 0u) << json;
  EXPECT_EQ(lines_of(json).size(), 1u);
  fail({"predict", "run", image, "--top-k", "0"}, kUsage);
}

}  // namespace
}  // namespace stoker::cli
