// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "data/container/csv_reader.h"
#include "data/source.h"
#include "data/storage/sample_file.h"
#include "made_data.h"

namespace stoker::data {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& text, std::vector<int64_t>* lines = nullptr) {
  const TempFolder folder;
  CsvReader reader(folder.write("x.csv", text));
  Rows rows;
  for (std::vector<std::string> fields; reader.next_row(fields);) {
    rows.push_back(fields);
    if (lines != nullptr) lines->push_back(reader.line());
  }
  return rows;
}

/// What comes after the folder's name in the message.
std::string csv_trouble(const std::string& text) {
  const std::string message = error_of([&] { rows_of(text); }).what();
  return message.substr(message.find("x.csv"));
}

TEST(CsvReaderTest, ReadsQuotesByteOrderMarksAndBothLineEnds) {
  std::vector<int64_t> lines;
  EXPECT_EQ(rows_of("\xEF\xBB\xBFpath,label\r\n\"a,b.jpg\",1\r\n\n\"say \"\"hi\"\"\n.jpg\",\nlast,2", &lines),
            Rows({{"path", "label"}, {"a,b.jpg", "1"}, {"say \"hi\"\n.jpg", ""}, {"last", "2"}}));
  EXPECT_EQ(lines, std::vector<int64_t>({1, 2, 4, 6}));
  EXPECT_EQ(rows_of(""), Rows());
  EXPECT_EQ(rows_of(",\n"), Rows({{"", ""}}));
}

TEST(CsvReaderTest, TroubleHasFileAndLine) {
  EXPECT_EQ(csv_trouble("a,b\nc\"d,e\n"), "x.csv:2: quote inside an unquoted field");
  EXPECT_EQ(csv_trouble("a,b\n\"c\nd,e\n"), "x.csv:2: the quote that opens here is never closed");
  EXPECT_EQ(csv_trouble("\"a\"b\n"), "x.csv:1: text after a closing quote");
  EXPECT_EQ(csv_trouble("a\rb\n"), "x.csv:1: carriage return inside a row");
  EXPECT_EQ(csv_trouble(std::string("a\n\0b\n", 5)), "x.csv:2: NUL byte");
  EXPECT_EQ(csv_trouble("a\n" + std::string(70000, 'x')), "x.csv:2: row longer than 65536 bytes");
  EXPECT_EQ(rows_of(std::string(65000, 'x') + "\n" + std::string(65000, 'y')).size(), 2u);
}

TEST(CsvReaderTest, ARefusedFileIsClosed) {
  const TempFolder folder;
  const std::string path = folder.write("x.csv", "\xEF\xBBpath,label\n");  // half a byte order mark
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  EXPECT_STREQ(error_of([&] { CsvReader reader(path); }).what(),
               (path + ":1: begins with half a byte order mark").c_str());
  EXPECT_EQ(open_files(), before);
}

class CsvLayoutTest : public testing::Test {
 protected:
  CsvLayoutTest() {
    for (const char* const name : {"a.png", "sub/b.png", "c,d.png"}) folder_.write(name, png_of({1, 2, 3}, 1, 1, 3));
    options_.data_dir = folder_.path();
  }

  Datasets open(const std::string& train, const std::string& val) {
    folder_.write("train.csv", train);
    folder_.write("val.csv", val);
    return open_datasets(options_);
  }

  /// The message without the folder.
  std::string trouble(const std::string& train, const std::string& val = "path,label\na.png,0\n") {
    const core::Error error = error_of([&] { open(train, val); });
    EXPECT_EQ(error.kind(), core::ErrorKind::data);
    hint_ = error.hint();
    return std::string(error.what()).substr(folder_.path().size() + 1);
  }

  TempFolder folder_;
  config::DataOptions options_;
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
  EXPECT_EQ(trouble("path,label\na.png,dog\nsub/b.png,cat\n", "path,label\na.png,dogs\n"),
            "val.csv:2: class 'dogs' does not occur in the training split; did you mean 'dog'?");
}

TEST_F(CsvLayoutTest, AbsolutePathsAreTakenAsTheyAre) {
  const Datasets datasets = open("path,label\n" + folder_ / "a.png,0\nsub/b.png,1\n", "path,label\na.png,0\n");
  EXPECT_EQ(datasets.train->name(0), folder_ / "a.png");
}

TEST_F(CsvLayoutTest, TheHeaderIsRequired) {
  EXPECT_EQ(trouble("a.png,0\n"), "train.csv:1: the header has no column 'path'; it reads 'a.png' and '0'");
  EXPECT_EQ(hint_, "the file begins with the line path,label and goes on like cats/1.jpg,0 or cats/1.jpg,cat");
  EXPECT_EQ(trouble("path,class\na.png,0\n"),
            "train.csv:1: the header has no column 'label'; it reads 'path' and 'class'");
  EXPECT_EQ(trouble(""), "train.csv:1: the file is empty");
  EXPECT_EQ(trouble("path,label\n").substr(0, 12), "train.csv:2:");
}

TEST_F(CsvLayoutTest, EveryLabelIsCheckedBeforeTraining) {
  const std::string good = "path,label\na.png,0\nsub/b.png,1\n";
  EXPECT_EQ(trouble("path,label\na.png,0\nsub/b.png,-100\n"), "train.csv:3: label -100 is negative");
  EXPECT_EQ(trouble("path,label\na.png,0\nsub/b.png,\n"), "train.csv:3: the label is missing");
  EXPECT_EQ(trouble("path,label\na.png,0\nsub/b.png\n"), "train.csv:3: 1 fields where the header has 2");
  EXPECT_EQ(trouble("path,label\na.png,0\nc,d.png,1\n"), "train.csv:3: 3 fields where the header has 2");
  EXPECT_EQ(hint_, "put a path that holds a comma in quotes");
  EXPECT_EQ(trouble("path,label\na.png,0\nsub/b.png,1.5\n"),
            "train.csv:3: label '1.5' is not a whole number, but other labels are");
  EXPECT_EQ(trouble("path,label\na.png,cat\nsub/b.png,1\n"),
            "train.csv:3: label '1' is a number, but the first label is a name");
  EXPECT_EQ(trouble("path,label\na.png,0\nsub/b.png,99999999999999999999\n"),
            "train.csv:3: label '99999999999999999999' is not a whole number, but other labels are");
  EXPECT_EQ(trouble("path,label\na.png,0\nsub/b.png,4000000\n"),
            "train.csv:3: label 4000000 is too large: there may be 1000000 classes");
  EXPECT_EQ(trouble("path,label\na.png,0\n,1\n"), "train.csv:3: the path is missing");
  EXPECT_EQ(trouble(good, "path,label\na.png,2\n"), "val.csv:2: label 2 is out of range: there are 2 classes, 0 to 1");
  options_.num_classes = 2;
  EXPECT_EQ(trouble("path,label\na.png,0\nsub/b.png,2\n"), "train.csv:3: label 2 is out of range: --num-classes is 2");
}

TEST_F(CsvLayoutTest, OnePathWithTwoLabelsIsAnError) {
  EXPECT_EQ(trouble("path,label\na.png,0\nsub/b.png,1\na.png,1\n"),
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

TEST(SampleFileTest, StorageTroubleIsTriedThreeTimes) {
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
