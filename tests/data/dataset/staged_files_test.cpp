// SPDX-License-Identifier: Apache-2.0
// --stage-dir for loose files: every layout of them reads copies, and gives the same data as without.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/log.h"
#include "data/open_datasets.h"
#include "made_data.h"
#include "made_shards.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

class StagedFilesTest : public ::testing::Test {
 protected:
  StagedFilesTest() {
    options_.data_dir = folder_ / "data";
    core::set_console_level(core::LogLevel::error);
  }
  ~StagedFilesTest() override { core::set_console_level(core::LogLevel::info); }

  void picture(const std::string& name, uint8_t gray) const {
    folder_.write("data/" + name, png_of(flat_pixels(4, 4, {gray}), 4, 4, 1));
  }

  static std::string frames_digest(const Source& source) {
    if (source.frames() == nullptr) return content_digest(source);
    std::string all;
    std::vector<uint8_t> buffer;
    for (int64_t i = 0; i < source.size(); ++i) {
      for (int64_t frame = 0; frame < source.frames()->frame_count(i); ++frame) {
        SampleContent content;
        all += source.frames()->read_frame(i, frame, buffer, content) + ";";
        all.append(reinterpret_cast<const char*>(content.bytes), content.size);
      }
    }
    return all;
  }

  /// Opens the data with and without copies; the images go away meanwhile.
  void expect_copies_are_read() {
    const Datasets plain = open_datasets(options_);
    const std::string train = frames_digest(*plain.train), val = frames_digest(*plain.val);
    options_.stage_dir = folder_.make_folder("fast");
    {
      const Datasets staged = open_datasets(options_);
      EXPECT_EQ(staged.train->fingerprint(), plain.train->fingerprint());
      EXPECT_EQ(staged.val->fingerprint(), plain.val->fingerprint());
      EXPECT_EQ(staged.train->name(0), plain.train->name(0)) << "the file that was given";
      fs::rename(folder_ / "data", folder_ / "away");
      EXPECT_TRUE(frames_digest(*staged.train) == train);
      EXPECT_TRUE(frames_digest(*staged.val) == val);
      fs::rename(folder_ / "away", folder_ / "data");
      std::set<std::string> staged_splits;
      for (const std::string& note : staged.notes) {
        if (note.find(" are read from ") != std::string::npos) staged_splits.insert(note.substr(0, note.find(':')));
      }
      EXPECT_EQ(staged_splits, (std::set<std::string>{"train", "val"}));
    }
    EXPECT_TRUE(fs::is_empty(options_.stage_dir));
  }

  TempFolder folder_;
  config::DataOptions options_;
};

TEST_F(StagedFilesTest, ClassFolders) {
  for (const std::string split : {"train", "val"}) {
    for (const std::string image : {"cat/0", "cat/1", "dog/deep/0"}) {
      picture(split + "/" + image + ".png", static_cast<uint8_t>(image.back() + split.size()));
    }
  }
  expect_copies_are_read();
}

TEST_F(StagedFilesTest, ImagesOfACsvAlsoBesideItsFolderAndByAbsolutePath) {
  for (int i = 0; i < 3; ++i) picture("images/" + std::to_string(i) + ".png", static_cast<uint8_t>(i));
  const std::string rows = "images/0.png,a\n" + (folder_ / "data/images/1.png") + ",b\n../data/images/2.png,a\n";
  folder_.write("data/train.csv", "path,label\n" + rows);
  folder_.write("data/val.csv", "path,label\n" + rows);
  expect_copies_are_read();
}

TEST_F(StagedFilesTest, ImagesOfACsvWithNumbers) {
  picture("0.png", 1);
  picture("1.png", 2);
  folder_.write("data/train.csv", std::string("path,x\n0.png,1\n1.png,2\n"));
  folder_.write("data/val.csv", std::string("path,x\n1.png,2\n"));
  options_.task = config::TaskKind::regression;
  expect_copies_are_read();
}

TEST_F(StagedFilesTest, HeadPoses) {
  for (const std::string subject : {"01", "02", "03"}) {
    picture(subject + "/frame_00003_rgb.png", static_cast<uint8_t>(subject[1]));
    folder_.write("data/" + subject + "/frame_00003_pose.txt", std::string("1 0 0\n0 1 0\n0 0 1\n\n80 -60 900\n"));
  }
  options_.task = config::TaskKind::head_pose;
  options_.dataset = config::DatasetType::biwi;
  expect_copies_are_read();
}

TEST_F(StagedFilesTest, ClipsAndTheirPairs) {
  for (const std::string split : {"train", "val"}) {
    for (const std::string video : {"real/v1", "fake/v2"}) {
      for (const std::string frame : {"hq/1", "hq/2", "lq/1", "lq/2"}) {
        picture(split + "/" + video + "/" + frame + ".png",
                static_cast<uint8_t>(frame[0] + frame.back() + video.back() + split.size()));
      }
    }
  }
  options_.clip_frames = 2;
  expect_copies_are_read();
}

}  // namespace
}  // namespace stoker::data
