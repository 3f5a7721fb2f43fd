// SPDX-License-Identifier: Apache-2.0
// Trees of images and CSV tables that cannot be trained on, and odd ones that can.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "bad_input.h"
#include "exit_codes.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

class BadImage : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadImage, IsRefused) {
  const Workplace work;
  expect_refused(GetParam(), work);
  // Images are decoded while training: at most the header of the table stands there by then.
  EXPECT_LE(lines_of(content_of_file(work / "run/summary.csv")).size(), 1u);
  EXPECT_FALSE(fs::exists(work / "run/checkpoints/last"));
}

using Damage = std::function<void(const Workplace&)>;

/// Class folders with something done to them.
std::function<Words(const Workplace&)> folders(const Damage& damage, const Words& more = {}) {
  return [=](const Workplace& work) {
    write_folders(work);
    damage(work);
    Words words = train_words({"--batch-size", "5", "--img-size", "8"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
}

/// The image data/train/dog/<name> beside good ones.
std::function<Words(const Workplace&)> image(const std::string& name, const std::string& content) {
  return folders([=](const Workplace& work) { work.write("data/train/dog/" + name, content); });
}

std::function<Words(const Workplace&)> csv(const std::string& train_table) {
  return [=](const Workplace& work) {
    write_csv(work);
    work.write("data/train.csv", train_table);
    return train_words({"--batch-size", "4"});
  };
}

const std::vector<BadInput>& bad_trees() {
  static const std::vector<BadInput> all = {
      {"OneClass",
       folders([](const Workplace& work) { fs::remove_all(work / "data/train/dog"); }),
       kData,
       {"data/train holds 1 class folder (cat); at least 2 classes are needed"}},
      {"NoClass",
       folders([](const Workplace& work) {
         fs::remove_all(work / "data/train/dog");
         fs::remove_all(work / "data/train/cat");
       }),
       kData,
       {"data/train holds 0 class folders"}},
      {"EmptyClassFolder",
       folders([](const Workplace& work) {
         fs::create_directory(work / "data/train/eel");
         fs::create_directory(work / "data/val/eel");
       }),
       kData,
       {"class folder data/train/eel has 0 images (8 found in the classes before it)"}},
      {"OtherClassesInValidation",
       folders([](const Workplace& work) { fs::rename(work / "data/val/dog", work / "data/val/hog"); }),
       kData,
       {"the class folders of data/val differ from the classes that are learned:", "only here: hog",
        "missing here: dog"}},
      {"ValidationWithoutImages",
       folders([](const Workplace& work) {
         for (const std::string name : {"cat", "dog"}) {
           fs::remove_all(work / ("data/val/" + name));
           fs::create_directory(work / ("data/val/" + name));
         }
       }),
       kData,
       {"split 'val' has 0 images"}},
      {"NoUsableImage",
       folders(
           [](const Workplace& work) {
             for (const auto& file : fs::recursive_directory_iterator(work / "data/train")) {
               if (file.is_regular_file()) fs::resize_file(file.path(), 50);
             }
           },
           {"--on-bad-image", "skip,1000"}),
       kData,
       {"epoch 1: none of its images could be used"}},
      {"ImagesTooSmallForTheNetwork",
       folders([](const Workplace&) {}, {"--model", "resnet9", "--img-size", "4"}),
       kConfig,
       {"resnet9 cannot take images of 4 x 4 pixels", "choose a larger --img-size, or another --model"}},
      {"ClassFoldersWithoutSplits",
       folders([](const Workplace& work) {
         fs::rename(work / "data/train/cat", work / "data/cat");
         fs::rename(work / "data/train/dog", work / "data/dog");
         fs::remove_all(work / "data/train");
       }),
       kNoInput,
       {"data has folders, but none is called 'train'", "--val-fraction"}},
  };
  return all;
}

const std::vector<BadInput>& bad_images() {
  const std::string jpeg = jpeg_of(64, 64, 90);
  static const std::vector<BadInput> all = {
      {"JpegCutShort",
       image("bad.jpg", jpeg.substr(0, jpeg.size() / 2)),
       kData,
       {"bad image data/train/dog/bad.jpg: ", "--on-bad-image skip"}},
      {"JpegWithDamagedData",
       image("bad.jpg", jpeg.substr(0, jpeg.size() - 60) + std::string(60, '\xFF')),
       kData,
       {"bad image data/train/dog/bad.jpg: "}},
      {"JpegHeaderOnly",
       image("bad.jpg", jpeg.substr(0, 20)),
       kData,
       {"bad image data/train/dog/bad.jpg: JPEG cut short inside its header"}},
      {"PngCutShort", image("bad.png", png_of(8, 8, 1).substr(0, 50)), kData, {"bad image data/train/dog/bad.png: "}},
      {"EmptyImage", image("bad.png", ""), kData, {"bad image data/train/dog/bad.png: empty file"}},
      {"DecompressionBomb",
       image("bad.png", png_bomb(32768, 32768)),
       kData,
       {"bad image data/train/dog/bad.png: its header gives 32768x32768", "--max-image-megapixels"}},
      {"SideOfBillionsOfPixels",
       image("bad.png", png_bomb(0x7FFFFFFF, 1)),
       kData,
       {"bad image data/train/dog/bad.png: its header gives 2147483647x1 pixels; a side may have"}},
      {"SideOfNoPixels",
       image("bad.png", png_bomb(0, 8)),
       kData,
       {"bad image data/train/dog/bad.png: its header gives 0x8 pixels"}},
      {"TextNamedJpg",
       image("bad.jpg", "this is no image, whatever its name is\n"),
       kData,
       {"bad image data/train/dog/bad.jpg: not an image: the first bytes are those of no format that is "
        "read"}},
      {"Gif", image("bad.gif", "GIF89a\1\0\1\0"), kData, {"bad image data/train/dog/bad.gif: damaged GIF: "}},
      {"NameWithEscapeSequence", image("\x1b[31m.png", ""), kData, {"[31m.png: empty file"}},
      {"DanglingLink",
       folders([](const Workplace& work) { fs::create_symlink("nowhere.png", work / "data/train/dog/bad.png"); }),
       kData,
       {"bad image data/train/dog/bad.png: No such file or directory"}},
      {"EveryImageBad",
       folders(
           [](const Workplace& work) {
             for (const auto& entry : fs::recursive_directory_iterator(work / "data/train")) {
               if (entry.is_regular_file()) fs::resize_file(entry.path(), 0);
             }
           },
           {"--on-bad-image", "skip,100"}),
       kData,
       {"none of 8 images that were looked at can be read; the first is data/train/cat/0.png: empty file"}},
      {"MoreBadImagesThanAllowed",
       folders(
           [](const Workplace& work) {
             work.write("data/train/dog/5.png", "");
             work.write("data/train/dog/6.png", "");
           },
           {"--on-bad-image", "skip,1"}),
       kData,
       {"more than the 1 of --on-bad-image skip", "data/train/dog/"}},
  };
  return all;
}

const std::vector<BadInput>& bad_tables() {
  static const std::vector<BadInput> all = {
      {"WithoutHeader",
       csv("pictures/zero.png,0\npictures/one.png,1\n"),
       kData,
       {"data/train.csv:1: the header has no column 'path'; it reads 'pictures/zero.png' and '0'",
        "hint: first line: path,label"}},
      {"Empty", csv(""), kData, {"data/train.csv:1: the file is empty"}},
      {"HeaderOnly", csv("path,label\n"), kData, {"data/train.csv", "there are no rows after the header"}},
      {"NegativeLabel",
       csv("path,label\nimages/0.png,0\nimages/1.png,-100\n"),
       kData,
       {"data/train.csv:3: label -100 is negative"}},
      {"WordAmongNumbers",
       csv("path,label\nimages/0.png,0\nimages/1.png,cat\n"),
       kData,
       {"data/train.csv:3: label 'cat' is not a whole number, but other labels are"}},
      {"FractionForLabel",
       csv("path,label\nimages/0.png,0\nimages/1.png,1.5\n"),
       kData,
       {"data/train.csv:3: label '1.5'"}},
      {"MissingLabel",
       csv("path,label\nimages/0.png,0\nimages/1.png,\n"),
       kData,
       {"data/train.csv:3: the label is missing"}},
      {"MissingField",
       csv("path,label\nimages/0.png,0\nimages/1.png\n"),
       kData,
       {"data/train.csv:3: 1 fields where the header has 2"}},
      {"OpenQuote",
       csv("path,label\n\"images/0.png,0\nimages/1.png,1\n"),
       kData,
       {"data/train.csv:2: the quote that opens here is never closed"}},
      {"SamePathWithTwoLabels",
       csv("path,label\nimages/0.png,0\nimages/1.png,1\nimages/0.png,1\n"),
       kData,
       {"data/train.csv:4: the same path stood earlier with another label"}},
      {"RowOfAMegabyte",
       csv("path,label\n" + std::string(1 << 20, 'x') + ",0\n"),
       kData,
       {"data/train.csv:2: row longer than"}},
      {"LabelOutOfRangeInValidation",
       [](const Workplace& work) {
         write_csv(work);
         work.write("data/val.csv", "path,label\nimages/0.png,2\n");
         return train_words({"--batch-size", "4"});
       },
       kData,
       {"data/val.csv:2: label 2 is out of range: there are 2 classes, 0 to 1"}},
      {"ImageThatIsNotThere",
       csv("path,label\nimages/0.png,0\nimages/1.png,1\nimages/9.png,1\n"),
       kData,
       {"bad image data/images/9.png: No such file or directory"}},
  };
  return all;
}

TEST(BadImageTest, ABatchThatSkippingLeavesWithOneImageIsLeftOutWhereTheNetworkCannotTrainOnIt) {
  const Workplace work;
  write_folders(work);
  work.write("data/train/dog/zz_torn.png", "torn");
  const Ended ended = run(
      train_words({"--batch-size", "2", "--img-size", "8", "--on-bad-image", "skip,1", "--epochs", "3"}), work.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  EXPECT_NE(ended.err.find("a batch of which skipping left one image is left out"), std::string::npos) << ended.err;
}

INSTANTIATE_TEST_SUITE_P(Tree, BadImage, ::testing::ValuesIn(bad_trees()), name_of);
INSTANTIATE_TEST_SUITE_P(File, BadImage, ::testing::ValuesIn(bad_images()), name_of);
INSTANTIATE_TEST_SUITE_P(Table, BadImage, ::testing::ValuesIn(bad_tables()), name_of);

/// Other files in the tree must neither hang nor stop a run.
TEST(OddData, PipesLoopsAndOtherFilesAreLeftOut) {
  const Workplace work;
  write_folders(work);
  ::mkfifo((work / "data/train/dog/pipe.png").c_str(), 0600);
  fs::create_directory_symlink("..", work / "data/train/dog/loop");
  work.write("data/train/dog/notes.txt", "not an image");
  work.write("data/train/dog/folder.jpg/9.png", png_of(8, 8, 9));
  const Words words = train_words({"--batch-size", "5"});
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_EQ(ended.exit_code, 0);
  const std::string log = content_of_file(work / "run/train.log");
  EXPECT_NE(log.find("skipped pipes, sockets and devices: 1 (the first: data/train/dog/pipe.png)"), std::string::npos);
  EXPECT_NE(log.find("skipped files that are not images: 1"), std::string::npos);
}

TEST(OddData, BadImagesWithinTheLimitAreSkippedAndNamed) {
  const Workplace work;
  write_folders(work);
  work.write("data/train/dog/bad.png", "");
  const Words words = train_words({"--batch-size", "5", "--on-bad-image", "skip,1"});
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_NE((ended.out + ended.err).find("data/train/dog/bad.png: empty file"), std::string::npos);
}

TEST(OddData, PredictSkipsAsManyBadImagesAsTheRunUnlessItIsAskedOtherwise) {
  const Workplace work;
  write_folders(work);
  const Words words = train_words({"--batch-size", "4", "--on-bad-image", "skip,1"});
  const Ended trained = run(words, work.path());
  ASSERT_EQ(trained.exit_code, 0) << story_of(words, trained);
  work.write("new/a.png", png_of(8, 8, 9));
  work.write("new/b.png", "torn");
  EXPECT_EQ(run({"predict", "run", "new"}, work.path()).exit_code, 0);
  EXPECT_EQ(run({"predict", "run", "new", "--on-bad-image", "fail"}, work.path()).exit_code, kData);
  work.write("new/c.png", "torn");
  EXPECT_EQ(run({"predict", "run", "new"}, work.path()).exit_code, kData) << "more than the one of the run";
}

TEST(OddData, PngNamedJpgIsTakenForWhatItIs) {
  const Workplace work;
  write_folders(work);
  work.write("data/train/dog/9.jpg", png_of(8, 8, 9));
  const Words words = train_words({"--batch-size", "5"});
  const Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
}

}  // namespace
}  // namespace stoker::cli
