// SPDX-License-Identifier: Apache-2.0
// Several HDF5 files as one data set.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "core/log.h"
#include "data/dataset/hdf5_source.h"
#include "data/open_datasets.h"
#include "made_hdf5.h"

namespace stoker::data {
namespace {

constexpr int64_t kRows = 5, kColumns = 7, kNumbers = kRows * kColumns;

/// Samples [first, first + count) of one long list; labels count up to 3.
void write_samples(const std::string& path, int64_t first, int64_t count, const std::string& group = "",
                   const Hdf5Recipe& recipe = {}) {
  const Bytes all = made_numbers((first + count) * kNumbers, 1);
  std::vector<int64_t> labels;
  for (int64_t i = first; i < first + count; ++i) labels.push_back(i % 3);
  MadeHdf5 file(path);
  const std::string prefix = group.empty() ? "" : group + "/";
  file.add(prefix + "x", "uint8", {count, kRows, kColumns}, Bytes(all.begin() + first * kNumbers, all.end()), recipe);
  file.add_labels(prefix + "y", labels);
}

Bytes samples_of(const Source& source) {
  Bytes all;
  std::vector<uint8_t> buffer;
  for (int64_t i = 0; i < source.size(); ++i) {
    SampleContent content;
    EXPECT_EQ(source.read(i, buffer, content), "");
    all.insert(all.end(), content.bytes, content.bytes + content.size);
    EXPECT_EQ(source.label(i), i % 3);
  }
  return all;
}

class Hdf5FolderTest : public ::testing::Test {
 protected:
  Hdf5FolderTest() { options_.data_dir = folder_.path(); }

  std::string made_folder(const std::string& name) { return folder_.make_folder(name); }

  /// 9 samples in three files, of which the tenth by name is the last.
  void write_three(const std::string& start) {
    write_samples(start + "2.h5", 4, 3);
    write_samples(start + "10.h5", 7, 2);
    write_samples(start + "1.h5", 0, 4);
  }

  TempFolder folder_;
  config::DataOptions options_;
};

TEST_F(Hdf5FolderTest, NumberedFilesOfASplitAreReadInTheOrderOfTheirNumbers) {
  write_three(folder_ / "train-");
  write_samples(folder_ / "val-0.h5", 0, 3);
  const Datasets datasets = open_datasets(options_);
  const Source& train = *datasets.train;
  ASSERT_EQ(train.size(), 9);
  EXPECT_EQ(datasets.val->size(), 3);
  EXPECT_EQ(samples_of(train), made_numbers(9 * kNumbers, 1));
  EXPECT_EQ(train.name(3), folder_ / "train-1.h5#3");
  EXPECT_EQ(train.name(4), folder_ / "train-2.h5#0");
  EXPECT_EQ(train.name(8), folder_ / "train-10.h5#1");
  EXPECT_EQ(train.relative_name(8), "#8");
  EXPECT_EQ(run_ends(train).back(), 9);
  EXPECT_EQ(run_ends(train).size(), 3u) << "each file is a run of its own";
}

TEST_F(Hdf5FolderTest, FilesWithAGroupPerSplitGiveTheirPartOfEach) {
  write_samples(folder_ / "a.h5", 0, 5, "train");
  write_samples(folder_ / "b.h5", 5, 4, "train");
  write_samples(folder_ / "c.h5", 0, 3, "val");
  const Datasets datasets = open_datasets(options_);
  EXPECT_EQ(samples_of(*datasets.train), made_numbers(9 * kNumbers, 1));
  EXPECT_EQ(datasets.train->name(5), folder_ / "b.h5:train#0");
  EXPECT_EQ(datasets.val->size(), 3);
}

TEST_F(Hdf5FolderTest, OfFilesOfAnyNameAPartIsHeldOut) {
  write_three(folder_ / "night");
  const core::Error error = error_of([&] { open_datasets(options_); });
  EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
  EXPECT_NE(std::string(error.hint()).find("night10.h5"), std::string::npos) << error.hint();
  options_.val_fraction = 0.4;
  const Datasets datasets = open_datasets(options_);
  EXPECT_EQ(datasets.train->size() + datasets.val->size(), 9);
  write_samples(folder_ / "test.h5", 0, 3);
  EXPECT_EQ(error_of([&] { open_datasets(options_); }).kind(), core::ErrorKind::no_input)
      << "test data beside them is not for training";
}

TEST_F(Hdf5FolderTest, OneFileAndSeveralHaveTheSameFingerprint) {
  write_samples(folder_ / "train.h5", 0, 9);
  write_samples(folder_ / "val.h5", 0, 3);
  const std::string whole = open_datasets(options_).train->fingerprint();
  std::filesystem::remove(folder_ / "train.h5");
  Hdf5Recipe deflated;
  deflated.chunk = {2, kRows, kColumns};
  deflated.deflate = true;
  write_samples(folder_ / "train_0.h5", 0, 5, "", deflated);
  write_samples(folder_ / "train_1.h5", 5, 4, "", deflated);
  EXPECT_EQ(open_datasets(options_).train->fingerprint(), whole);
  EXPECT_EQ(samples_of(*open_datasets(options_).train), made_numbers(9 * kNumbers, 1));
  options_.stage_dir = made_folder("fast");
  core::set_console_level(core::LogLevel::error);
  {
    const Datasets staged = open_datasets(options_);
    EXPECT_EQ(staged.train->fingerprint(), whole);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(options_.stage_dir), {}), 1);
  }
  core::set_console_level(core::LogLevel::info);
  EXPECT_TRUE(std::filesystem::is_empty(options_.stage_dir)) << "all copies go with the sources";
}

TEST_F(Hdf5FolderTest, ClassesAreThoseOfAllFiles) {
  write_samples(folder_ / "train_0.h5", 0, 2);  // classes 0 and 1
  write_samples(folder_ / "train_1.h5", 2, 4);
  write_samples(folder_ / "val.h5", 0, 3);
  EXPECT_EQ(open_datasets(options_).train->num_classes(), 3);
}

}  // namespace
}  // namespace stoker::data
