// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/idx_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "data/open_datasets.h"
#include "data/probe/probe_sizes.h"
#include "made_data.h"

namespace stoker::data {
namespace {

constexpr char kDebianFolder[] = "/usr/share/datasets/fashion-mnist";

const Bytes kPixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // two images of 2 rows and 3 columns

void write_split(const TempFolder& folder, const Bytes& images, const Bytes& labels) {
  folder.write("train-images-idx3-ubyte", images);
  folder.write("train-labels-idx1-ubyte", labels);
}

core::Error open_error(const TempFolder& folder) {
  return error_of([&] { open_idx_split(folder.path(), "train", idx_class_names(folder.path(), 10)); });
}

TEST(IdxSourceTest, ReadsPixelsAndLabels) {
  const TempFolder folder;
  write_split(folder, idx_images(2, 2, 3, kPixels), idx_labels(2, {7, 0}));
  const auto source = open_idx_split(folder.path(), "train", idx_class_names(folder.path(), 10));
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(source->label(0), 7);
  EXPECT_EQ(source->name(1), folder / "train-images-idx3-ubyte#1");
  EXPECT_EQ(source->class_names()[9], "9");
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(source->read(1, buffer, content), "");
  EXPECT_TRUE(content.is_pixels());
  EXPECT_EQ(content.height, 2);
  EXPECT_EQ(content.width, 3);
  EXPECT_EQ(content.channels, 1);
  EXPECT_EQ(Bytes(content.bytes, content.bytes + content.size), Bytes({7, 8, 9, 10, 11, 12}));
}

TEST(IdxSourceTest, GzippedFilesAreTheSameData) {
  const TempFolder plain, packed;
  write_split(plain, idx_images(2, 2, 3, kPixels), idx_labels(2, {7, 0}));
  packed.write("train-images-idx3-ubyte.gz", gzipped(idx_images(2, 2, 3, kPixels)));
  packed.write("train-labels-idx1-ubyte.gz", gzipped(idx_labels(2, {7, 0})));
  const auto open = [](const TempFolder& folder) {
    return open_idx_split(folder.path(), "train", idx_class_names(folder.path(), 10))->fingerprint();
  };
  EXPECT_EQ(open(plain), open(packed));
  write_split(plain, idx_images(2, 2, 3, kPixels), idx_labels(2, {7, 1}));
  EXPECT_NE(open(plain), open(packed));
}

TEST(IdxSourceTest, DebiansFashionMnistIsTheDefault) {
  if (!std::filesystem::exists(kDebianFolder)) GTEST_SKIP() << "package dataset-fashion-mnist is not installed";
  const Datasets datasets = open_datasets(config::DataOptions());
  EXPECT_EQ(datasets.train->size(), 60000);
  EXPECT_EQ(datasets.val->size(), 10000);
  EXPECT_EQ(datasets.train->class_names()[0], "T-shirt/top");
  EXPECT_EQ(datasets.train->class_names()[9], "Ankle boot");
  EXPECT_EQ(datasets.train->label(0), 9);
  const SizeProbe probe = probe_sizes(*datasets.train, 64);
  EXPECT_EQ(probe.channels, 1);
  EXPECT_EQ(probe.median_height, 28);
}

TEST(IdxSourceTest, WrongMagicIsNamed) {
  const TempFolder folder;
  write_split(folder, idx_images(2, 2, 3, kPixels, 0x802), idx_labels(2, {7, 0}));
  EXPECT_EQ(open_error(folder).kind(), core::ErrorKind::data);
  EXPECT_EQ(open_error(folder).what(),
            folder / "train-images-idx3-ubyte: magic 0x00000802 instead of 0x00000803 (images)");
  write_split(folder, idx_images(2, 2, 3, kPixels), idx_labels(2, {7, 0}, 0x803));
  EXPECT_EQ(open_error(folder).what(),
            folder / "train-labels-idx1-ubyte: magic 0x00000803 instead of 0x00000801 (labels)");
}

TEST(IdxSourceTest, CutAndOverlongFilesAreFound) {
  const TempFolder folder;
  Bytes images = idx_images(2, 2, 3, kPixels);
  images.pop_back();
  write_split(folder, images, idx_labels(2, {7, 0}));
  EXPECT_EQ(open_error(folder).what(), folder /
                                           "train-images-idx3-ubyte: cut short: the header promises 12 bytes of "
                                           "content, there are 11");
  images.insert(images.end(), {1, 2, 3});
  write_split(folder, images, idx_labels(2, {7, 0}));
  EXPECT_EQ(open_error(folder).what(),
            folder / "train-images-idx3-ubyte: more content than the 12 bytes that the header promises");
  write_split(folder, {0, 0, 8, 3, 0}, idx_labels(2, {7, 0}));
  EXPECT_EQ(open_error(folder).what(), folder / "train-images-idx3-ubyte: cut short inside the IDX header");
}

TEST(IdxSourceTest, AHeaderThatLiesAllocatesNothing) {
  const TempFolder folder;
  write_split(folder, idx_images(0xFFFFFFFF, 60000, 60000, kPixels), idx_labels(2, {7, 0}));
  EXPECT_NE(std::string(open_error(folder).what())
                .find("the header promises 15461882262000000000 bytes of content, more than a file"),
            std::string::npos)
      << open_error(folder).what();
}

TEST(IdxSourceTest, AFileOfMoreThanTheFreeMemoryIsRefusedBeforeItIsInflated) {
  const TempFolder folder;
  folder.write("train-labels-idx1-ubyte", idx_labels(2, {7, 0}));
  folder.write("train-images-idx3-ubyte.gz", gzipped(idx_images(0xFFFFFF, 1000, 1000, kPixels)));  // 17 TB
  std::filesystem::resize_file(folder / "train-images-idx3-ubyte.gz", uint64_t{20} << 30);  // of which none is stored
  EXPECT_EQ(open_error(folder).kind(), core::ErrorKind::out_of_memory);
  EXPECT_NE(std::string(open_error(folder).what()).find("its content takes 16.8 TB of memory, "), std::string::npos)
      << open_error(folder).what();
}

TEST(IdxSourceTest, ADamagedGzipStreamIsFound) {
  const TempFolder folder;
  const Bytes whole = gzipped(idx_images(2, 20, 30, pattern_pixels(20, 60, 1)));
  folder.write("train-labels-idx1-ubyte", idx_labels(2, {7, 0}));
  folder.write("train-images-idx3-ubyte.gz", Bytes(whole.begin(), whole.end() - 40));
  EXPECT_NE(std::string(open_error(folder).what()).find("cut short"), std::string::npos) << open_error(folder).what();
  Bytes damaged = whole;
  damaged[damaged.size() - 6] ^= 1;  // of the checksum
  folder.write("train-images-idx3-ubyte.gz", damaged);
  EXPECT_NE(std::string(open_error(folder).what()).find("damaged gzip stream"), std::string::npos)
      << open_error(folder).what();
}

TEST(IdxSourceTest, CountsMustAgreeAndImagesMustBeThere) {
  const TempFolder folder;
  write_split(folder, idx_images(2, 2, 3, kPixels), idx_labels(3, {7, 0, 1}));
  EXPECT_EQ(open_error(folder).what(),
            folder / "train-labels-idx1-ubyte: 3 labels for the 2 images of " + folder / "train-images-idx3-ubyte");
  write_split(folder, idx_images(0, 2, 3, {}), idx_labels(0, {}));
  EXPECT_EQ(open_error(folder).what(), folder / "train-images-idx3-ubyte: holds 0 images");
  write_split(folder, idx_images(2, 0, 3, {}), idx_labels(2, {7, 0}));
  EXPECT_EQ(open_error(folder).what(), folder / "train-images-idx3-ubyte: images of 3x0 pixels");
}

TEST(IdxSourceTest, LabelsMustBeBelowTheNumberOfClasses) {
  const TempFolder folder;
  write_split(folder, idx_images(2, 2, 3, kPixels), idx_labels(2, {7, 255}));
  const core::Error error = open_error(folder);
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_EQ(error.what(), folder /
                              "train-labels-idx1-ubyte: label 255 of image 1 is out of range: there are 10 "
                              "classes, 0 to 9");
  EXPECT_EQ(error.hint(), "if the data has more classes, set --num-classes");
  EXPECT_EQ(open_idx_split(folder.path(), "train", idx_class_names(folder.path(), 256))->size(), 2);
}

TEST(IdxSourceTest, MissingFilesAndPipesAreNoInput) {
  const TempFolder folder;
  folder.write("train-images-idx3-ubyte", idx_images(2, 2, 3, kPixels));
  EXPECT_EQ(open_error(folder).kind(), core::ErrorKind::no_input);
  EXPECT_EQ(open_error(folder).what(), folder / "train-labels-idx1-ubyte[.gz] does not exist");
  ASSERT_EQ(::mkfifo((folder / "train-labels-idx1-ubyte").c_str(), 0600), 0);
  EXPECT_EQ(open_error(folder).what(), "cannot read " + folder / "train-labels-idx1-ubyte: it is not a regular file");
}

}  // namespace
}  // namespace stoker::data
