// SPDX-License-Identifier: Apache-2.0
// CSV manifests with numbers to learn: what is read, and the errors.
#include <gtest/gtest.h>

#include "data/dataset/file_source.h"
#include "data/source.h"
#include "tests/data/dataset/csv_files.h"

namespace stoker::data {
namespace {

class CsvTargetTest : public CsvFiles {
 protected:
  CsvTargetTest() { options_.task = config::TaskKind::regression; }

  std::string problem(const std::string& train, const std::string& val = "path,x\na.png,1\n") {
    const std::string message = error_of([&] { open(train, val); }).what();
    return message.find(".csv") == std::string::npos ? message : message.substr(message.rfind('/') + 1);
  }
};

TEST_F(CsvTargetTest, EveryColumnButPathIsATargetInTheOrderOfTheTrainingFile) {
  const Datasets data = open("x,path,y\n0.5,a.png,-3\n1e3,b.png,0\n", "path,y,x\nc.png,2,1\n");
  EXPECT_EQ(data.train->target_names(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(data.train->learned_names(), data.train->target_names());
  EXPECT_TRUE(data.train->class_names().empty());
  EXPECT_EQ(targets(*data.train, 0), (std::vector<float>{0.5F, -3}));
  EXPECT_EQ(targets(*data.train, 1), (std::vector<float>{1000, 0}));
  EXPECT_EQ(targets(*data.val, 0), (std::vector<float>{1, 2}));
  EXPECT_EQ(data.train->label(0), -1);
}

TEST_F(CsvTargetTest, HeadPoseTakesItsThreeAnglesByName) {
  options_.task = config::TaskKind::head_pose;
  const Datasets data =
      open("roll,subject,path,yaw,pitch\n3,anna,a.png,1,2\n", "path,yaw,pitch,roll\nb.png,-1,-2,-3\n");
  EXPECT_EQ(targets(*data.train, 0), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(targets(*data.val, 0), (std::vector<float>{-1, -2, -3}));
}

TEST_F(CsvTargetTest, ErrorsHaveFileAndLine) {
  EXPECT_EQ(problem("path,x\na.png,one\n"), "train.csv:2: x 'one' is not a finite number");
  EXPECT_EQ(problem("path,x\na.png,1\nb.png,\n"), "train.csv:3: x '' is not a finite number");
  EXPECT_EQ(problem("path,x\na.png,nan\n"), "train.csv:2: x 'nan' is not a finite number");
  EXPECT_EQ(problem("path,x\na.png,1e99\n"), "train.csv:2: x '1e99' is not a finite number");
  EXPECT_EQ(problem("path,x\na.png,1 2\n"), "train.csv:2: x '1 2' is not a finite number");
  EXPECT_EQ(problem("path,x\na.png,1,2\n"), "train.csv:2: 3 fields where the header has 2");
  EXPECT_EQ(problem("path\na.png\n"), "train.csv:1: there is no column besides path");
  EXPECT_EQ(problem("path,x,x\na.png,1,2\n"), "train.csv:1: two columns are called 'x'");
  EXPECT_EQ(problem("thing,x\n?,1\n"), "train.csv:1: the header has no column 'path'; it reads 'thing' and 'x'");
  EXPECT_EQ(problem("path,x\na.png,1\na.png,2\n"), "train.csv:3: the same path stood earlier with other targets");
  EXPECT_EQ(problem("path,x\n"), "train.csv:2: there are no rows after the header");
  EXPECT_EQ(problem("path,x,y\na.png,1,2\n"), "val.csv:1: the header has no column 'y'; it reads 'path' and 'x'");
  options_.task = config::TaskKind::multilabel;
  EXPECT_EQ(problem("path,x\na.png,0.5\n"), "train.csv:2: x '0.5' is not 0 or 1");
  options_.task = config::TaskKind::head_pose;
  EXPECT_EQ(problem("path,yaw,pitch,roll\na.png,0,361,0\n"), "train.csv:2: pitch '361' is not an angle in degrees");
}

TEST_F(CsvTargetTest, FoldersOfClassesCannotServeATaskThatLearnsNumbers) {
  folder_.write("train/cat/a.png", png_of({1, 2, 3}, 1, 1, 3));
  folder_.write("train/dog/a.png", png_of({1, 2, 3}, 1, 1, 3));
  const core::Error error = error_of([&] { open_datasets(options_); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("task regression learns numbers, but"), std::string::npos) << error.what();
}

TEST_F(CsvTargetTest, TheFingerprintSeesEveryTarget) {
  const std::string val = "path,x\na.png,1\n";
  const std::string first = open("path,x\na.png,1\nb.png,2\n", val).train->fingerprint();
  EXPECT_EQ(open("path,x\na.png,1\nb.png,2\n", val).train->fingerprint(), first);
  EXPECT_NE(open("path,x\na.png,1\nb.png,2.5\n", val).train->fingerprint(), first);
  EXPECT_NE(open("path,y\na.png,1\nb.png,2\n", "path,y\na.png,1\n").train->fingerprint(), first);
}

TEST_F(CsvTargetTest, AHeldOutPartKeepsItsTargets) {
  options_.val_fraction = 0.5;
  std::string table = "path,x\n";
  for (int i = 0; i < 40; ++i) table += "img" + std::to_string(i) + ".png," + std::to_string(i) + "\n";
  folder_.write("train.csv", table);
  const Datasets data = open_datasets(options_);
  for (const auto& part : {data.train, data.val}) {
    ASSERT_EQ(part->num_targets(), 1);
    for (int64_t i = 0; i < part->size(); ++i) {
      EXPECT_EQ(part->relative_name(i), "img" + std::to_string(static_cast<int>(targets(*part, i)[0])) + ".png");
    }
  }
}

}  // namespace
}  // namespace stoker::data
