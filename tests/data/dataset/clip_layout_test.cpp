// SPDX-License-Identifier: Apache-2.0
// Folders of frames: how they are found, ordered, cut short, cached and split.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/format.h"
#include "data/cache/cached_source.h"
#include "data/dataset/file_source.h"
#include "data/dataset/held_out.h"
#include "data/loader/loader.h"
#include "data/open_datasets.h"
#include "data/source.h"
#include "data/storage/tree_walk.h"
#include "made_data.h"

namespace stoker::data {
namespace {

config::DataOptions clip_options(const TempFolder& folder, int64_t clip_frames = 3) {
  config::DataOptions options;
  options.data_dir = folder.path();
  options.clip_frames = clip_frames;
  return options;
}

/// Frames 1 to `frames` of a video, each a flat picture of its own brightness.
void write_video(const TempFolder& folder, const std::string& video, int frames, const std::string& prefix = "frame_") {
  for (int i = 1; i <= frames; ++i) {
    folder.write(video + "/" + prefix + std::to_string(i) + ".png",
                 png_of(flat_pixels(4, 4, {static_cast<uint8_t>(10 * i)}), 4, 4, 1));
  }
}

/// Two classes, two splits.
void write_clips(const TempFolder& folder) {
  write_video(folder, "train/real/v2", 12);
  write_video(folder, "train/real/v1", 3);
  write_video(folder, "train/fake/v1", 2);
  write_video(folder, "val/real/v7", 3);
  write_video(folder, "val/fake/v8", 3);
}

std::vector<std::string> frames_of(const Source& source, int64_t index) {
  std::vector<std::string> names;
  for (int64_t frame = 0; frame < source.frames()->frame_count(index); ++frame)
    names.push_back(source.frames()->frame_name(index, frame));
  return names;
}

/// The brightness of a frame that is read through the source.
int brightness(const Source& source, int64_t index, int64_t frame) {
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(source.frames()->read_frame(index, frame, buffer, content), "");
  if (content.is_pixels()) return content.bytes[0];
  ImageBuffer image;
  EXPECT_EQ(decode_image(content.bytes, content.size, 1, {}, image), "");
  return image.pixels[0];
}

bool is_noted(const Datasets& datasets, const std::string& text) {
  return std::any_of(datasets.notes.begin(), datasets.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST(NaturalOrderTest, NumbersCountAsNumbers) {
  EXPECT_TRUE(comes_before("frame_9.jpg", "frame_10.jpg"));
  EXPECT_FALSE(comes_before("frame_10.jpg", "frame_9.jpg"));
  EXPECT_TRUE(comes_before("a2b10", "a2b11"));
  EXPECT_TRUE(comes_before("007", "8"));
  EXPECT_TRUE(comes_before("x", "x1"));
  EXPECT_TRUE(comes_before("01", "1"));
  EXPECT_FALSE(comes_before("1", "01"));
  EXPECT_FALSE(comes_before("same", "same"));
  EXPECT_TRUE(comes_before("18446744073709551616", "18446744073709551617"));  // beyond 64 bits
}

TEST(ClipLayoutTest, FoldersOfFramesAreRecognisedAndEachIsASample) {
  const TempFolder folder;
  write_clips(folder);
  const Datasets datasets = open_datasets(clip_options(folder));
  const Source& train = *datasets.train;
  ASSERT_EQ(train.size(), 3);
  EXPECT_TRUE(holds_videos(train));
  EXPECT_EQ(train.fixed_shape().frames, 3);
  EXPECT_EQ(train.fixed_shape().height, 0);
  EXPECT_EQ(train.class_names(), std::vector<std::string>({"fake", "real"}));
  EXPECT_EQ(train.relative_name(0), "fake/v1");
  EXPECT_EQ(train.name(2), folder / "train/real/v2");
  EXPECT_EQ(train.label(0), 0);
  EXPECT_EQ(train.label(2), 1);
  EXPECT_EQ(datasets.val->size(), 2);
  EXPECT_TRUE(is_noted(datasets, "clips of 3 frames, spread over each"));
  EXPECT_TRUE(is_noted(datasets, "videos too short for 3 frames, whose last frame is repeated: 1"));
}

TEST(ClipLayoutTest, FramesComeInTheOrderOfTheirNumbers) {
  const TempFolder folder;
  write_clips(folder);
  config::DataOptions options = clip_options(folder);
  options.frame_sampling = config::FrameSampling::stride;
  const auto train = open_datasets(options).train;
  const std::vector<std::string> names = frames_of(*train, 2);
  ASSERT_EQ(names.size(), 12u);
  EXPECT_EQ(names[8], "frame_9.png");
  EXPECT_EQ(names[9], "frame_10.png");
  for (int frame = 0; frame < 12; ++frame) EXPECT_EQ(brightness(*train, 2, frame), 10 * (frame + 1));
}

TEST(ClipLayoutTest, OfFramesThatNoClipShowsNothingIsKept) {
  const TempFolder folder;
  write_clips(folder);
  const auto train = open_datasets(clip_options(folder)).train;
  EXPECT_EQ(frames_of(*train, 2), std::vector<std::string>({"frame_3.png", "frame_7.png", "frame_11.png"}));
  EXPECT_EQ(train->frames()->frame_count(0), 2);
  const auto single = open_datasets(clip_options(folder, 1)).train;
  EXPECT_EQ(single->fixed_shape(), SampleShape());
  EXPECT_EQ(frames_of(*single, 2), std::vector<std::string>({"frame_7.png"}));
}

TEST(ClipLayoutTest, TheFingerprintIsOfTheFramesAndOfHowManyAreSeen) {
  const TempFolder first, second;
  write_clips(first);
  write_clips(second);
  const std::string fingerprint = open_datasets(clip_options(first)).train->fingerprint();
  EXPECT_EQ(open_datasets(clip_options(second)).train->fingerprint(), fingerprint);
  EXPECT_NE(open_datasets(clip_options(first, 2)).train->fingerprint(), fingerprint);
  write_video(second, "train/fake/v1", 3);
  EXPECT_NE(open_datasets(clip_options(second)).train->fingerprint(), fingerprint);
}

TEST(ClipLayoutTest, OtherNamesOfFramesAreClipsWhenAskedFor) {
  const TempFolder folder;
  write_video(folder, "train/a/v1", 4, "");
  write_video(folder, "train/b/v1", 4, "");
  write_video(folder, "val/a/v2", 4, "");
  write_video(folder, "val/b/v2", 4, "");
  config::DataOptions options = clip_options(folder);
  EXPECT_FALSE(holds_videos(*open_datasets(options).train));
  EXPECT_EQ(open_datasets(options).train->size(), 8);
  options.dataset = config::DatasetType::clips;
  EXPECT_EQ(open_datasets(options).train->size(), 2);
}

TEST(ClipLayoutTest, WholeVideosAreHeldOut) {
  const TempFolder folder;
  for (int i = 0; i < 20; ++i) {
    write_video(folder, core::format("real/v{}", i), 3);
    write_video(folder, core::format("fake/v{}", i), 3);
  }
  config::DataOptions options = clip_options(folder);
  options.val_fraction = 0.3;
  const Datasets datasets = open_datasets(options);
  EXPECT_EQ(datasets.train->size() + datasets.val->size(), 40);
  EXPECT_GT(datasets.val->size(), 4);
  EXPECT_EQ(datasets.val->fixed_shape().frames, 3);
  for (int64_t i = 0; i < datasets.val->size(); ++i) {
    EXPECT_EQ(frames_of(*datasets.val, i), std::vector<std::string>({"frame_1.png", "frame_2.png", "frame_3.png"}));
    EXPECT_EQ(brightness(*datasets.val, i, 2), 30);
    EXPECT_GT(datasets.val->frames()->frame_bytes(i, 2), 0);
  }
}

TEST(ClipLayoutTest, AWrongTreeIsAnErrorThatShowsTheRightOne) {
  const auto refused = [](const TempFolder& folder) {
    config::DataOptions options = clip_options(folder);
    options.dataset = config::DatasetType::clips;
    const core::Error error = error_of([&] { open_datasets(options); });
    EXPECT_NE(error.hint().find("<data-dir>/train/real/video_0001/frame_0002.jpg"), std::string::npos) << error.hint();
    return std::string(error.what());
  };
  const TempFolder flat, deep, empty;
  for (const char* const name : {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png"}) {
    flat.write(name, png_of({1, 2, 3}, 1, 1, 3));
  }
  EXPECT_NE(refused(flat).find("train/a holds 1 images, but neither videos nor folders of frames"), std::string::npos);
  write_video(deep, "train/a/person/v1", 2);
  write_video(deep, "train/b/person/v1", 2);
  EXPECT_NE(refused(deep).find("train/a/person/v1/frame_1.png lies too deep"), std::string::npos);
  refused(empty);
}

TEST(ClipLayoutTest, ImagesBesideTheVideosAreCounted) {
  const TempFolder folder;
  write_clips(folder);
  folder.write("train/real/poster.png", png_of({1, 2, 3}, 1, 1, 3));
  config::DataOptions options = clip_options(folder);
  options.dataset = config::DatasetType::clips;
  EXPECT_TRUE(is_noted(open_datasets(options), "skipped images beside the folders of videos: 1"));
}

TEST(ClipLayoutTest, CachesHoldFrames) {
  const TempFolder folder;
  write_clips(folder);
  config::DataOptions options = clip_options(folder);
  options.frame_sampling = config::FrameSampling::stride;
  const auto source = evenly_spaced(open_datasets(options).train, 2);  // fake/v1 and real/v1, behind a subset
  for (const config::CacheTier tier : {config::CacheTier::ram, config::CacheTier::compressed}) {
    CacheSettings settings;
    settings.tier = tier;
    settings.budget_bytes = 1 << 20;
    settings.channels = 1;
    const CachePlan plan = plan_cache(source, settings);
    EXPECT_EQ(plan.held(), 5);
    EXPECT_EQ(plan.samples, 5);
    const auto cached = make_cached_source(source, plan, settings);
    EXPECT_EQ(cached->fixed_shape(), source->fixed_shape());
    EXPECT_EQ(cached->fingerprint(), source->fingerprint());
    EXPECT_TRUE(holds_videos(*cached));
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(brightness(*cached, 0, 1), 20);
      for (int64_t frame = 0; frame < 3; ++frame) EXPECT_EQ(brightness(*cached, 1, frame), 10 * (frame + 1));
    }
    EXPECT_GT(cached->memory().cached_bytes, 0);
    std::vector<uint8_t> buffer;
    SampleContent content;
    EXPECT_EQ(cached->frames()->read_frame(1, 2, buffer, content), "");
    EXPECT_EQ(content.is_pixels(), tier == config::CacheTier::ram);
    EXPECT_TRUE(buffer.empty()) << "the second time nothing is read";
  }
}

TEST(ClipLayoutTest, LooseVideosAreFoldersOfImages) {
  const TempFolder folder;
  write_video(folder, "a/v1", 4, "");
  write_video(folder, "a/v2", 2, "");
  const auto videos = open_loose_videos(folder.path(), clip_options(folder));
  ASSERT_EQ(videos->size(), 2);
  EXPECT_EQ(videos->name(1), folder / "a/v2");
  EXPECT_EQ(videos->label(0), -1);
  const auto one = open_loose_videos(folder / "a/v1", clip_options(folder));
  ASSERT_EQ(one->size(), 1);
  EXPECT_EQ(one->name(0), folder / "a/v1");
  EXPECT_EQ(one->frames()->frame_count(0), 3);
  EXPECT_EQ(error_of([&] { open_loose_videos(folder / "a/v1/1.png", clip_options(folder)); }).kind(),
            core::ErrorKind::no_input);
}

TEST(ClipLayoutTest, ShardsDoNotTakeVideos) {
  const TempFolder folder;
  write_clips(folder);
  std::vector<std::string> notes;
  const core::Error error = error_of([&] { open_whole_splits(clip_options(folder), {}, notes); });
  EXPECT_NE(std::string(error.what()).find("shards hold single images"), std::string::npos);
}

}  // namespace
}  // namespace stoker::data
