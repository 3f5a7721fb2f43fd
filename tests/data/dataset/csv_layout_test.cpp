// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "data/storage/byte_reader.h"
#include "tests/data/dataset/csv_files.h"

namespace stoker::data {
namespace {

class CsvLayoutTest : public CsvFiles {
 protected:
  CsvLayoutTest() : CsvFiles({"a.png", "sub/b.png", "c,d.png"}) {}

  /// The message without the folder.
  std::string problem(const std::string& train, const std::string& val = "path,label\na.png,0\n") {
    const core::Error error = error_of([&] { open(train, val); });
    EXPECT_EQ(error.kind(), core::ErrorKind::data);
    hint_ = error.hint();
    return std::string(error.what()).substr(folder_.path().size() + 1);
  }

  std::string hint_;
};

TEST_F(CsvLayoutTest, WholeNumbersAreClassIndices) {
  const Datasets datasets = open("path,label\na.png,2\nsub/b.png,0\n\"c,d.png\",1\n", "label,path\n1,a.png\n");
  EXPECT_EQ(datasets.train->class_names(), std::vector<std::string>({"0", "1", "2"}));
  EXPECT_EQ(datasets.train->label(0), 2);
  EXPECT_EQ(datasets.train->name(2), folder_ / "c,d.png");
  EXPECT_EQ(datasets.val->label(0), 1);
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(datasets.train->read(1, buffer, content), "");
}

TEST_F(CsvLayoutTest, NamesAreSortedAndComeFromTheTrainingFile) {
  const Datasets datasets = open("path,label,note\na.png,dog,x\nsub/b.png,cat,\n", "path,label\na.png,dog\n");
  EXPECT_EQ(datasets.train->class_names(), std::vector<std::string>({"cat", "dog"}));
  EXPECT_EQ(datasets.train->label(0), 1);
  EXPECT_EQ(datasets.val->label(0), 1);
  EXPECT_EQ(datasets.val->class_names(), datasets.train->class_names());
  EXPECT_EQ(problem("path,label\na.png,dog\nsub/b.png,cat\n", "path,label\na.png,dogs\n"),
            "val.csv:2: class 'dogs' does not occur in the training split; did you mean 'dog'?");
}

TEST_F(CsvLayoutTest, AbsolutePathsAreTakenAsTheyAre) {
  const Datasets datasets = open("path,label\n" + folder_ / "a.png,0\nsub/b.png,1\n", "path,label\na.png,0\n");
  EXPECT_EQ(datasets.train->name(0), folder_ / "a.png");
}

TEST_F(CsvLayoutTest, ColumnsOfPathsAndClassesAreFoundOrNamed) {
  EXPECT_EQ(problem("x.png,0\n"), "train.csv:1: the header has no column 'path'; it reads 'x.png' and '0'");
  EXPECT_EQ(hint_,
            "first line: path,label; then lines like cats/1.jpg,0 or cats/1.jpg,cat; --csv-path and "
            "--csv-label name other "
            "columns");
  EXPECT_EQ(problem("path,a,b\na.png,x,y\n"),
            "train.csv:1: the header has no column 'label'; it reads 'path', 'a' and 'b'");
  EXPECT_EQ(problem(""), "train.csv:1: the file is empty");
  EXPECT_EQ(problem("path,label\n").substr(0, 12), "train.csv:2:");
}

TEST_F(CsvLayoutTest, EveryLabelIsCheckedBeforeTraining) {
  const std::string good = "path,label\na.png,0\nsub/b.png,1\n";
  EXPECT_EQ(problem("path,label\na.png,0\nsub/b.png,-100\n"), "train.csv:3: label -100 is negative");
  EXPECT_EQ(problem("path,label\na.png,0\nsub/b.png,\n"), "train.csv:3: the label is missing");
  EXPECT_EQ(problem("path,label\na.png,0\nsub/b.png\n"), "train.csv:3: 1 fields where the header has 2");
  EXPECT_EQ(problem("path,label\na.png,0\nc,d.png,1\n"), "train.csv:3: 3 fields where the header has 2");
  EXPECT_EQ(hint_, "put a path that holds a comma in quotes");
  EXPECT_EQ(problem("path,label\na.png,0\nsub/b.png,1.5\n"),
            "train.csv:3: label '1.5' is not a whole number, but other labels are");
  EXPECT_EQ(problem("path,label\na.png,cat\nsub/b.png,1\n"),
            "train.csv:3: label '1' is a number, but the first label is a name");
  EXPECT_EQ(problem("path,label\na.png,0\n,1\n"), "train.csv:3: the path is missing");
  EXPECT_EQ(problem(good, "path,label\na.png,2\n"), "val.csv:2: label 2 is out of range: there are 2 classes, 0 to 1");
  options_.num_classes = 2;
  EXPECT_EQ(problem("path,label\na.png,0\nsub/b.png,2\n"), "train.csv:3: label 2 is out of range: --num-classes is 2");
}

TEST_F(CsvLayoutTest, OnePathWithTwoLabelsIsAnError) {
  EXPECT_EQ(problem("path,label\na.png,0\nsub/b.png,1\na.png,1\n"),
            "train.csv:4: the same path stood earlier with another label");
  const Datasets datasets = open("path,label\na.png,0\nsub/b.png,1\na.png,0\n", "path,label\na.png,0\n");
  EXPECT_EQ(datasets.train->size(), 3);
  EXPECT_EQ(datasets.notes[0], "train: paths listed more than once: 1 (the first: a.png)");
}

TEST_F(CsvLayoutTest, MissingFilesAreNotedAndBadImagesLater) {
  const Datasets datasets = open("path,label\na.png,0\ngone.png,1\n", "path,label\na.png,0\n");
  EXPECT_EQ(datasets.notes[0], "train: files of the manifest that are not there: 1 (the first: gone.png)");
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(datasets.train->read(1, buffer, content), "No such file or directory");
}

TEST(SampleFileTest, StorageErrorsAreTriedThreeTimes) {
  int attempts = 0;
  EXPECT_EQ(with_storage_retries([&] { return ++attempts, EIO; }), EIO);
  EXPECT_EQ(attempts, 3);
  attempts = 0;
  EXPECT_EQ(with_storage_retries([&] { return ++attempts < 3 ? ESTALE : 0; }), 0);
  EXPECT_EQ(attempts, 3);
  attempts = 0;
  EXPECT_EQ(with_storage_retries([&] { return ++attempts, ENOENT; }), ENOENT);
  EXPECT_EQ(attempts, 1);
}

}  // namespace
}  // namespace stoker::data
