// SPDX-License-Identifier: Apache-2.0
// Shards of other makers, with and without an index, and what makes them unusable.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "data/container/tar_reader.h"
#include "data/open_datasets.h"
#include "data/shard/shard_index.h"
#include "made_shards.h"

namespace stoker::data {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

std::string jpeg() {
  static const std::string file = text_of(jpeg_of(pattern_pixels(12, 10, 3), 12, 10));
  return file;
}
std::string png() {
  static const std::string file = text_of(png_of(pattern_pixels(12, 10, 3), 12, 10, 3));
  return file;
}

class ShardSourceTest : public ::testing::Test {
 protected:
  void write(const std::string& shard, const Members& members) const { folder_.write(shard, archive_of(members)); }
  Datasets open() const {
    config::DataOptions options = options_for(folder_.path());
    options.val_split = std::string("train");
    return open_datasets(options);
  }
  std::string problem() const {
    const core::Error error = error_of([&] { open(); });
    EXPECT_EQ(error.kind(), core::ErrorKind::data);
    return error.what();
  }
  std::vector<std::pair<std::string, int64_t>> samples() const {
    const Datasets datasets = open();
    std::vector<std::pair<std::string, int64_t>> list;
    for (int64_t i = 0; i < datasets.train->size(); ++i) {
      list.emplace_back(datasets.train->relative_name(i), datasets.train->label(i));
    }
    return list;
  }

  const TempFolder folder_;
};

using Samples = std::vector<std::pair<std::string, int64_t>>;

TEST_F(ShardSourceTest, ShardsWithoutAnIndexAreReadThroughWithANote) {
  write("train-000000.tar", {{"00.jpg", jpeg()}, {"00.cls", "1"}, {"01.cls", "0\n"}, {"01.jpg", jpeg()}});
  write("train-000001.tar", {{"x/02.png", png()}, {"x/02.cls", "2"}});
  EXPECT_EQ(samples(), (Samples{{"00.jpg", 1}, {"01.jpg", 0}, {"x/02.png", 2}}));
  const Datasets datasets = open();
  EXPECT_EQ(datasets.train->class_names(), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(datasets.train->name(2), folder_ / "train-000001.tar/x/02.png");
  EXPECT_EQ(datasets.notes.at(0), "train: 2 of 2 shards have no index and were read through; train pack --index " +
                                      folder_.path() + " writes it once for all");
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(datasets.train->read(2, buffer, content), "");
  EXPECT_EQ(std::string(content.bytes, content.bytes + content.size), png());
}

TEST_F(ShardSourceTest, AnIndexChangesNothingButTheNote) {
  write("train-000000.tar", {{"00.jpg", jpeg()}, {"00.cls", "1"}, {"01.jpg", jpeg()}, {"01.cls", "0"}});
  const std::string without = content_digest(*open().train), fingerprint = open().train->fingerprint();
  EXPECT_EQ(write_missing_indexes(folder_.path(), [](const std::string&) {}).written, 1);
  EXPECT_EQ(content_digest(*open().train), without);
  EXPECT_EQ(open().train->fingerprint(), fingerprint);
  EXPECT_TRUE(open().notes.empty());
}

TEST_F(ShardSourceTest, StagedShardsAreReadFromCopiesThatGoWithTheSource) {
  write_loose_images(folder_);
  pack_folder(folder_.path(), pack_settings(folder_ / "packed"));
  config::DataOptions options = options_for(folder_ / "packed");
  const Datasets plain = open_datasets(options);
  const std::string whole = content_digest(*plain.train);
  options.stage_dir = folder_ / "fast";
  std::filesystem::create_directory(options.stage_dir);
  core::set_console_level(core::LogLevel::error);
  {
    const Datasets staged = open_datasets(options);
    EXPECT_EQ(staged.train->fingerprint(), plain.train->fingerprint());
    EXPECT_EQ(staged.train->name(0), plain.train->name(0)) << "the file that was given";
    const std::string first = "packed/train-000000.tar";
    folder_.write(first, Bytes(std::filesystem::file_size(folder_ / first)));
    EXPECT_EQ(content_digest(*staged.train), whole) << "the copies are read";
    EXPECT_FALSE(std::filesystem::is_empty(options.stage_dir));
  }
  core::set_console_level(core::LogLevel::info);
  EXPECT_TRUE(std::filesystem::is_empty(options.stage_dir));
}

TEST_F(ShardSourceTest, LabelsComeFromClsThenFromJsonAndMayBeNames) {
  folder_.write("classes.txt", std::string("ant\r\nbee\n"));
  write("train-0.tar", {{"0.json", R"({"label": 1, "text": "x"})"},
                        {"0.jpg", jpeg()},
                        {"1.jpg", jpeg()},
                        {"1.json", R"({"label": "ant"})"},
                        {"2.jpg", jpeg()},
                        {"2.json", R"({"label": "ant"})"},
                        {"2.cls", " bee "},
                        {"3.jpg", jpeg()},
                        {"3.cls", "0"}});
  EXPECT_EQ(samples(), (Samples{{"0.jpg", 1}, {"1.jpg", 0}, {"2.jpg", 1}, {"3.jpg", 0}}));
  EXPECT_EQ(open().train->class_names(), (std::vector<std::string>{"ant", "bee"}));
}

TEST_F(ShardSourceTest, AFolderOfArchivesIsASplitAndKindsHaveAnyCase) {
  write("train/00000.tar", {{"0.JPG", jpeg()}, {"0.CLS", "1"}});
  write("train/00001.tar", {{"1.jpg", jpeg()}, {"1.cls", "0"}});
  EXPECT_EQ(samples(), (Samples{{"0.JPG", 1}, {"1.jpg", 0}}));
  write("train_0.tar", {{"2.jpg", jpeg()}, {"2.cls", "0"}});
  EXPECT_EQ(samples(), (Samples{{"2.jpg", 0}})) << "archives called like the split come first";
}

TEST_F(ShardSourceTest, ArchivesBesideClassFoldersAreLeftovers) {
  for (const char* const name : {"train/ant/1.png", "train/bee/1.png"}) folder_.write(name, png());
  write("train/all.tar", {{"0.jpg", jpeg()}});
  EXPECT_EQ(open().train->class_names(), (std::vector<std::string>{"ant", "bee"}));
}

TEST_F(ShardSourceTest, OfSeveralImagesTheJpegIsTaken) {
  write("train-0.tar", {{"0.png", png()},
                        {"0.jpg", jpeg()},
                        {"0.cls", "0"},
                        {"1.seg.png", png()},
                        {"1.webp", "w"},
                        {"1.cls", "1"},
                        {"2.left.JPG", jpeg()},
                        {"2.cls", "0"}});
  EXPECT_EQ(samples(), (Samples{{"0.jpg", 0}, {"1.webp", 1}, {"2.left.JPG", 0}}));
}

TEST_F(ShardSourceTest, WhatIsNoSampleIsPassedOverWithANote) {
  write("train-0.tar", {{"README", "x"},
                        {"text.txt", "x"},
                        {"text.cls", "0"},
                        {"0.jpg", jpeg()},
                        {"0.cls", "0"},
                        {"1.jpg", jpeg()},
                        {"1.cls", "1"}});
  EXPECT_EQ(samples().size(), 2u);
  const std::vector<std::string> notes = open().notes;
  EXPECT_NE(core::list_text(notes).find("members of shards that are not part of a sample: 1"), std::string::npos);
  EXPECT_NE(core::list_text(notes).find("samples of shards without an image or sound: 1"), std::string::npos);
}

TEST_F(ShardSourceTest, ASplitIsItsNameAndANumber) {
  for (const char* const name : {"train-0.tar", "train-clean-0.tar", "training-0.tar", "train.tar", "val-7.tar",
                                 "train-00.tar.gz", ".train-1.tar"}) {
    write(name, {{std::string(name) + "/a.jpg", jpeg()}, {std::string(name) + "/a.cls", "0"}});
  }
  EXPECT_EQ(shards_in(folder_.path(), "train"),
            (std::vector<std::string>{folder_ / "train-0.tar", folder_ / "train.tar"}));
  EXPECT_EQ(shards_in(folder_.path(), "val"), std::vector<std::string>{folder_ / "val-7.tar"});
  EXPECT_TRUE(shards_in(folder_.path(), "test").empty());
}

TEST_F(ShardSourceTest, LabelsThatAreNoneAreRefusedWithTheirPlace) {
  const std::string place = folder_ / "train-0.tar/";
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", "cat"}});
  EXPECT_EQ(problem(), place + "0.cls: label 'cat' is neither a number nor the name of a class");
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", "-1"}});
  EXPECT_EQ(problem(), place + "0.cls: label '-1' is neither a number nor the name of a class");
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", ""}});
  EXPECT_EQ(problem(), place + "0.cls: label '' is neither a number nor the name of a class");
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", "1000000"}});
  EXPECT_EQ(problem(), place + "0.cls: label 1000000 is too large");
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", std::string(5000, '1')}});
  EXPECT_EQ(problem(), place + "0.cls has 5000 bytes; at most 4096 are read");
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", "1"}, {"0.cls", "1"}});
  EXPECT_EQ(problem(), place + "0.cls: a second label of one sample");
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.json", "{"}});
  EXPECT_EQ(problem().rfind(place + "0.json: json", 0), 0u) << problem();
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.json", R"({"label": 1.5})"}});
  EXPECT_EQ(problem(), place + "0.json: its label is neither a whole number from 0 nor a text");
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.txt", "cat"}});
  EXPECT_EQ(problem(), place + "0.jpg has no label");
  folder_.write("classes.txt", std::string("a\nb\n"));
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", "2"}});
  EXPECT_EQ(problem(), place + "0.jpg: label 2 is out of range: there are 2 classes, 0 to 1");
}

TEST_F(ShardSourceTest, ClassFilesThatAreDamagedAreRefused) {
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", "0"}});
  folder_.write("classes.txt", std::string("a\nb\na\n"));
  EXPECT_EQ(problem(), folder_ / "classes.txt:3: class 'a' stood there before");
  folder_.write("classes.txt", std::string("a\n\nb\n"));
  EXPECT_EQ(problem(), folder_ / "classes.txt:2: the name of a class is missing");
  for (const char* const text : {"{", "[]", R"({"format":"x"})", R"({"format":"stoker-pack","version":1,"splits":[1]})",
                                 R"({"format":"stoker-pack","version":2,"splits":{}})",
                                 R"({"format":"stoker-pack","version":1,"splits":{"train":{"shards":"x"}}})"}) {
    folder_.write("classes.txt", std::string("a\nb\n"));
    folder_.write("pack.json", std::string(text));
    EXPECT_EQ(problem().rfind(folder_ / "pack.json", 0), 0u) << problem();
  }
}

TEST_F(ShardSourceTest, AShardThatNoLongerFitsItsIndexMakesBadImages) {
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", "0"}, {"1.png", png()}, {"1.cls", "1"}});
  write_missing_indexes(folder_.path(), [](const std::string&) {});
  // The same bytes in all, but the samples changed places.
  write("train-0.tar", {{"1.png", png()}, {"1.cls", "1"}, {"0.jpg", jpeg()}, {"0.cls", "0"}});
  const std::shared_ptr<const Source> train = open().train;
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(train->read(0, buffer, content), "the shard has changed since its index was made");
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", "0"}});
  EXPECT_NE(problem().find("its index was made for"), std::string::npos);
}

TEST_F(ShardSourceTest, AShardThatIsCutWhileItIsUsedMakesBadImages) {
  write("train-0.tar", {{"0.jpg", jpeg()}, {"0.cls", "0"}, {"1.jpg", jpeg()}, {"1.cls", "1"}});
  const std::shared_ptr<const Source> train = open().train;
  std::filesystem::resize_file(folder_ / "train-0.tar", 600);
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(train->read(1, buffer, content), "the file has become shorter since it was opened");
}

TEST_F(ShardSourceTest, DamagedArchivesAreRefusedWithTheirPath) {
  folder_.write("train-0.tar", std::string("no archive"));
  EXPECT_EQ(problem(), folder_ / "train-0.tar: byte 0: cut short: there is no end-of-archive block");
  folder_.write("train-0.tar", std::string(4096, 'x'));
  EXPECT_EQ(problem(), folder_ / "train-0.tar: byte 0: not a header of a POSIX or GNU tar archive");
  folder_.write("train-0.tar.index", std::string("no index"));
  EXPECT_EQ(problem(), folder_ / "train-0.tar.index: cut short inside the header");
}

TEST_F(ShardSourceTest, FilesOfOtherKindsThatAreCalledLikeArchivesAreNamed) {
  folder_.write("train-0.tar", std::string("\x04\x22\x4D\x18") + std::string(2000, 'x'));
  EXPECT_EQ(problem(), folder_ / "train-0.tar: compressed by LZ4: its members cannot be read in any order");
  folder_.write("train-0.tar", std::string("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"));
  EXPECT_EQ(problem(), folder_ / "train-0.tar is a pointer of Git LFS, not a tar archive");
  for (const char* const text : {"<!DOCTYPE html><html>", "\xEF\xBB\xBF<html>"}) {
    folder_.write("train-0.tar", std::string(text));
    EXPECT_EQ(problem(), folder_ / "train-0.tar is HTML or XML, not a tar archive");
  }
  write("train-0.tar", {{"{0}.jpg", jpeg()}, {"{0}.cls", "0"}});
  EXPECT_EQ(samples().size(), 1u) << "a name that begins as JSON does";
}

TEST_F(ShardSourceTest, AnEntryTakesFewBytesOfMemory) { EXPECT_LE(sizeof(ShardEntry), 64u); }

}  // namespace
}  // namespace stoker::data
