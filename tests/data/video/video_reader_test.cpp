// SPDX-License-Identifier: Apache-2.0
// Frames of video files by their number, and files that are damaged.
#include "data/video/video_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "core/system/file.h"
#include "data/storage/tree_walk.h"
#include "made_data.h"
#include "made_video.h"

namespace stoker::data {
namespace {

constexpr int64_t kMostBytes = 1 << 24;  // of a made file

class VideoReaderTest : public ::testing::Test {
 protected:
  /// A file of made frames.
  std::string write(const std::string& name, int count, VideoRecipe recipe) {
    if (recipe.width == 0) recipe.width = 32, recipe.height = 20;
    frames_ = made_frames(count, recipe.width, recipe.height);
    write_video_file(folder_ / name, frames_, recipe);
    return folder_ / name;
  }
  VideoIndex take(const std::string& path, const VideoLimits& limits = {}) {
    const VideoPlace place{path, "", stamp_of(path)};
    const auto index = std::make_shared<const VideoIndex>(VideoReader::index_of(place, limits));
    reader_.take(place, limits, index);
    return *index;
  }
  /// The pixels of a frame; a failure where it is bad.
  Bytes frame(int64_t number) {
    const std::string cause = reader_.read(number, rgb_, height_, width_);
    EXPECT_EQ(cause, "") << number;
    return {rgb_.begin(), rgb_.begin() + (cause.empty() ? height_ * width_ * 3 : 0)};
  }
  /// Why the video or its frame 0 to `frames` - 1 is bad, or "".
  std::string cause_of(const std::string& path, const VideoLimits& limits = {}) {
    const VideoIndex index = take(path, limits);
    std::string cause = index.cause;
    for (int64_t i = 0; i < index.frames && cause.empty(); ++i) cause = reader_.read(i, rgb_, height_, width_);
    return cause;
  }
  std::string content_of(const std::string& path) const { return core::read_file(path, kMostBytes); }

  const TempFolder folder_;
  std::vector<Bytes> frames_;
  VideoReader reader_;
  Bytes rgb_;
  int height_ = 0, width_ = 0;
};

TEST_F(VideoReaderTest, FramesWithoutLossAreThePixelsThatWentIn) {
  for (const char* const name : {"a.mkv", "a.avi", "a.mov"}) {
    for (const auto& [width, height] : {std::pair{32, 20}, {33, 21}, {7, 5}}) {
      VideoRecipe recipe;
      recipe.width = width;
      recipe.height = height;
      ASSERT_EQ(take(write(name, 9, recipe)).frames, 9) << name;
      for (int i = 0; i < 9; ++i) EXPECT_EQ(frame(i), frames_[static_cast<size_t>(i)]) << name << " " << i;
    }
  }
}

TEST_F(VideoReaderTest, AFrameHasTheSamePixelsInAnyOrderOfReading) {
  std::mt19937 random(1);
  for (const char* const name : {"a.mp4", "a.mkv", "a.avi"}) {
    for (const int reordered : {0, 2}) {
      VideoRecipe recipe;
      recipe.codec = "mpeg4";
      recipe.group = 7;
      recipe.reordered = reordered;
      const std::string path = write(name, 40, recipe);
      const VideoIndex index = take(path);
      ASSERT_EQ(index.frames, 40) << name << " " << index.cause;
      EXPECT_GE(index.keys.size(), reordered == 0 ? 5u : 1u) << name;
      std::vector<Bytes> in_order;
      for (int i = 0; i < 40; ++i) {
        in_order.push_back(frame(i));
        int64_t difference = 0;  // of a codec with loss
        for (size_t k = 0; k < in_order.back().size(); ++k) {
          difference += std::abs(int{in_order.back()[k]} - int{frames_[static_cast<size_t>(i)][k]});
        }
        EXPECT_LT(difference / static_cast<int64_t>(in_order.back().size()), 40) << name << " " << i;
      }
      for (int i = 39; i >= 0; i -= 3) EXPECT_EQ(frame(i), in_order[static_cast<size_t>(i)]) << name << " " << i;
      for (int i = 0; i < 20; ++i) {
        const auto number = static_cast<size_t>(random() % 40);
        EXPECT_EQ(frame(static_cast<int64_t>(number)), in_order[number]) << name << " " << number;
      }
      EXPECT_EQ(frame(39), in_order[39]);
      EXPECT_EQ(frame(39), in_order[39]) << "again, behind the end";
    }
  }
}

TEST_F(VideoReaderTest, FramesAreCountedWhateverTheirTimes) {
  VideoRecipe recipe;
  recipe.group = 3;
  recipe.times = {0, 1, 2, 40, 41, 90, 200, 207, 500, 501};
  const VideoIndex index = take(write("a.mkv", 10, recipe));
  ASSERT_EQ(index.frames, 10);
  for (const int i : {9, 3, 4, 0, 7}) EXPECT_EQ(frame(i), frames_[static_cast<size_t>(i)]) << i;
}

TEST_F(VideoReaderTest, PicturesAreShownAsTheirMatrixTurnsThem) {
  constexpr int32_t kOne = 1 << 16, kLast = 1 << 30;
  struct Turn {
    int32_t a, b, c, d;
  };
  for (const Turn& turn :
       {Turn{1, 0, 0, 1}, {0, 1, -1, 0}, {-1, 0, 0, -1}, {0, -1, 1, 0}, {-1, 0, 0, 1}, {0, 1, 1, 0}}) {
    VideoRecipe recipe;
    recipe.width = 6;
    recipe.height = 4;
    recipe.matrix = {turn.a * kOne, turn.b * kOne, 0, turn.c * kOne, turn.d * kOne, 0, 0, 0, kLast};
    take(write("a.mov", 1, recipe));
    const Bytes shown = frame(0);
    const bool swaps = turn.b != 0;
    ASSERT_EQ(width_, swaps ? 4 : 6);
    ASSERT_EQ(height_, swaps ? 6 : 4);
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 6; ++x) {
        // The matrix, and a shift into the first quadrant.
        const int to_x = turn.a * x + turn.c * y + (turn.a < 0 ? 5 : 0) + (turn.c < 0 ? 3 : 0);
        const int to_y = turn.b * x + turn.d * y + (turn.b < 0 ? 5 : 0) + (turn.d < 0 ? 3 : 0);
        const uint8_t* const pixel = frames_[0].data() + (y * 6 + x) * 3;
        EXPECT_TRUE(std::equal(pixel, pixel + 3, shown.data() + (to_y * width_ + to_x) * 3)) << x << " " << y;
      }
    }
  }
  VideoRecipe askew;
  askew.matrix = {46341, 46341, 0, -46341, 46341, 0, 0, 0, kLast};
  EXPECT_NE(cause_of(write("b.mov", 1, askew)).find("turned by less than a quarter"), std::string::npos);
}

TEST_F(VideoReaderTest, WhatIsCutShortIsNamed) {
  for (const char* const name : {"a.mkv", "a.avi", "a.mp4"}) {
    VideoRecipe recipe;
    recipe.codec = "mpeg4";
    const std::string whole = content_of(write(name, 20, recipe));
    for (const double share : {0.95, 0.6, 0.3}) {
      folder_.write(name, whole.substr(0, static_cast<size_t>(share * static_cast<double>(whole.size()))));
      EXPECT_EQ(cause_of(folder_ / name).rfind("cut short", 0), 0u) << name << " " << cause_of(folder_ / name);
    }
  }
}

TEST_F(VideoReaderTest, DamagedBytesAreNoticed) {
  VideoRecipe recipe;
  recipe.width = 64;
  recipe.height = 48;
  std::string content = content_of(write("a.mkv", 6, recipe));
  EXPECT_EQ(cause_of(folder_ / "a.mkv"), "");
  for (size_t i = content.size() / 2; i < content.size() / 2 + 200; i += 10)
    content[i] = static_cast<char>(content[i] ^ 4);
  folder_.write("a.mkv", content);
  EXPECT_EQ(cause_of(folder_ / "a.mkv").rfind("damaged", 0), 0u) << cause_of(folder_ / "a.mkv");
}

TEST_F(VideoReaderTest, FilesThatAreNoVideosAreNamed) {
  EXPECT_NE(cause_of(folder_.write("a.mp4", std::string("hello"))).find("is no video that is read; videos are MP4"),
            std::string::npos);
  EXPECT_EQ(cause_of(folder_.write("b.mp4", std::string())), "the file is empty");
  EXPECT_NE(cause_of(folder_.write("c.mp4", png_of({1, 2, 3}, 1, 1, 3))).find("is no video"), std::string::npos);
  EXPECT_NE(cause_of(folder_ / "d.mp4"), "");
  VideoRecipe sound;
  sound.has_sound = true;
  sound.has_pictures = false;
  write_video_file(folder_ / "e.mkv", {}, sound);
  EXPECT_EQ(cause_of(folder_ / "e.mkv"), "it has sound and no pictures");
}

TEST_F(VideoReaderTest, SoundBesideThePicturesChangesNothing) {
  VideoRecipe recipe;
  recipe.has_sound = true;
  ASSERT_EQ(take(write("a.mkv", 5, recipe)).frames, 5);
  for (const int i : {4, 1}) EXPECT_EQ(frame(i), frames_[static_cast<size_t>(i)]);
}

TEST_F(VideoReaderTest, LargeFramesAreRefusedByTheLimitOfImages) {
  VideoRecipe recipe;
  recipe.width = 200;
  recipe.height = 100;
  const std::string path = write("a.mkv", 2, recipe);
  VideoLimits limits;
  limits.max_megapixels = 0.019;
  EXPECT_EQ(cause_of(path, limits), "its frames are 200 x 100 pixels, more than --max-image-megapixels 0.019");
  limits.max_megapixels = 0.02;
  EXPECT_EQ(cause_of(path, limits), "");
}

TEST_F(VideoReaderTest, AFileThatChangesAfterTheScanIsNamed) {
  const std::string path = write("a.mkv", 3, {});
  const VideoPlace place{path, "", {stamp_of(path).size + 1, 0}};
  EXPECT_EQ(VideoReader::index_of(place, {}).cause, "it has changed since the scan");
}

TEST_F(VideoReaderTest, ACopyIsReadAndTheFileWhereItIsBad) {
  const std::string path = write("a.mkv", 3, {});
  const FileStamp stamp = stamp_of(path);
  const VideoPlace place{path, folder_ / "nowhere.mkv", stamp};
  const auto index = std::make_shared<const VideoIndex>(VideoReader::index_of(place, {}));
  EXPECT_EQ(index->cause, "");
  reader_.take(place, {}, index);
  EXPECT_EQ(frame(2), frames_[2]);
}

}  // namespace
}  // namespace stoker::data
