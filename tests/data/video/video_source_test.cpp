// SPDX-License-Identifier: Apache-2.0
// Video files as clips: found, chosen, read on several threads, equal to the same frames as pictures.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/format.h"
#include "data/cache/cache_plan.h"
#include "data/loader/loader.h"
#include "data/open_datasets.h"
#include "made_data.h"
#include "made_video.h"

namespace stoker::data {
namespace {

constexpr int kVideoWidth = 24, kVideoHeight = 16;

config::DataOptions video_options(const std::string& path, int64_t clip_frames = 3) {
  config::DataOptions options;
  options.data_dir = path;
  options.clip_frames = clip_frames;
  return options;
}

/// The same frames as a video and as pictures.
void write_both(const TempFolder& videos, const TempFolder& pictures, const std::string& name, int frames, int seed) {
  VideoRecipe recipe;
  recipe.width = kVideoWidth;
  recipe.height = kVideoHeight;
  recipe.group = 4;
  const auto made = made_frames(frames, kVideoWidth, kVideoHeight, seed);
  videos.write(name + ".mkv", std::string());
  write_video_file(videos / name + ".mkv", made, recipe);
  for (int i = 0; i < frames; ++i) {
    pictures.write(core::format("{}/frame_{}.png", name, i),
                   png_of(made[static_cast<size_t>(i)], kVideoWidth, kVideoHeight, 3));
  }
}

void write_splits(const TempFolder& videos, const TempFolder& pictures) {
  int seed = 0;
  for (const char* const name :
       {"train/fake/v1", "train/fake/v2", "train/real/v1", "train/real/v2", "val/fake/v3", "val/real/v3"}) {
    write_both(videos, pictures, name, 2 + 5 * seed, seed);  // the first is too short
    ++seed;
  }
}

/// The pixels of some epochs as one text.
std::string batches_of(const std::shared_ptr<const Source>& source, const config::DataOptions& options, bool training,
                       int64_t workers) {
  TransformPlan plan;
  plan.shape = source->fixed_shape();
  plan.shape.height = plan.shape.width = 12;
  plan.shape.channels = 3;
  plan.clip = {options.frame_sampling, options.frame_stride, training};
  plan.training = training;
  LoaderSettings settings;
  settings.batch_size = 2;
  settings.num_workers = workers;
  settings.shuffle = training;
  settings.seed = 3;
  Loader loader(source, plan, settings);
  std::string pixels;
  HostBatch batch;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.begin_epoch(epoch);
    while (loader.next(batch)) {
      pixels.append(static_cast<const char*>(batch.images.data_ptr()), static_cast<size_t>(batch.images.numel()));
      loader.release(batch);
    }
  }
  return pixels;
}

TEST(VideoSourceTest, ClassFoldersOfVideosAreClips) {
  const TempFolder videos, pictures;
  write_splits(videos, pictures);
  const Datasets datasets = open_datasets(video_options(videos.path()));
  EXPECT_EQ(datasets.type, config::DatasetType::clips);
  const Source& train = *datasets.train;
  ASSERT_EQ(train.size(), 4);
  EXPECT_EQ(train.class_names(), std::vector<std::string>({"fake", "real"}));
  EXPECT_TRUE(holds_videos(train));
  EXPECT_FALSE(holds_pixels(train)) << "they are decoded";
  EXPECT_EQ(train.fixed_shape().frames, 3);
  EXPECT_EQ(train.relative_name(1), "fake/v2.mkv");
  EXPECT_EQ(train.label(2), 1);
  EXPECT_EQ(train.frames()->frame_count(1), 7);
  EXPECT_EQ(train.frames()->frame_name(1, 4), "frame 5");
  EXPECT_EQ(datasets.val->size(), 2);
  EXPECT_EQ(plan_cache(datasets.train, {}).held(), 0);
}

TEST(VideoSourceTest, AVideoAndItsFramesAsPicturesGiveTheSameBits) {
  const TempFolder videos, pictures;
  write_splits(videos, pictures);
  for (const auto sampling : {config::FrameSampling::uniform, config::FrameSampling::stride}) {
    config::DataOptions of_videos = video_options(videos.path()), of_pictures = video_options(pictures.path());
    of_videos.frame_sampling = of_pictures.frame_sampling = sampling;
    of_videos.frame_stride = of_pictures.frame_stride = 2;
    const Datasets first = open_datasets(of_videos), second = open_datasets(of_pictures);
    for (const bool training : {true, false}) {
      const std::string expected = batches_of(second.train, of_pictures, training, 1);
      for (const int64_t workers : {0, 1, 3}) {
        EXPECT_TRUE(batches_of(first.train, of_videos, training, workers) == expected) << training << " " << workers;
      }
    }
  }
}

TEST(VideoSourceTest, PairsAreTwoFilesInTheFolderOfAVideo) {
  const TempFolder videos, pictures;
  for (const char* const name : {"train/fake/v1/hq", "train/fake/v1/lq", "train/real/v2/hq", "train/real/v2/lq"}) {
    write_both(videos, pictures, name, 5, name[11]);
  }
  config::DataOptions options = video_options(videos.path(), 2);
  options.val_split = config::kNoValidation;
  const auto train = open_datasets(options).train;
  ASSERT_EQ(train->size(), 2);
  EXPECT_EQ(train->fixed_shape().views, 2);
  EXPECT_EQ(train->relative_name(1), "real/v2");
  EXPECT_EQ(train->frames()->frame_count(0), 10);
  EXPECT_EQ(train->frames()->frame_name(0, 7), "lq frame 3");
  config::DataOptions of_pictures = options;
  of_pictures.data_dir = pictures.path();
  EXPECT_TRUE(batches_of(train, options, true, 2) == batches_of(open_datasets(of_pictures).train, options, true, 1));
  write_both(videos, pictures, "train/fake/v1/lq", 4, 0);
  const auto changed = open_datasets(options).train;
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(changed->read(0, buffer, content), "its video in high quality has 5 frames, that in low quality 4");
  write_both(videos, pictures, "train/real/v3", 4, 0);
  EXPECT_NE(std::string(error_of([&] { open_datasets(options); }).what()).find("is no pair"), std::string::npos);
}

TEST(VideoSourceTest, ListsNameVideos) {
  const TempFolder videos, pictures;
  write_splits(videos, pictures);
  videos.write("clips.csv",
               std::string("path,label\ntrain/fake/v1.mkv,fake\ntrain/fake/v2.mkv,fake\ntrain/real/v1.mkv,real\n"));
  config::DataOptions options = video_options(videos / "clips.csv");
  options.val_split = config::kNoValidation;
  const auto train = open_datasets(options).train;
  ASSERT_EQ(train->size(), 3);
  EXPECT_EQ(train->fixed_shape().frames, 3);
  EXPECT_EQ(train->label(2), 1);
  EXPECT_EQ(train->frames()->frame_count(2), 12);
}

TEST(VideoSourceTest, LooseVideosAreFilesOrFoldersOfThem) {
  const TempFolder videos, pictures;
  write_splits(videos, pictures);
  const config::DataOptions options = video_options(videos.path());
  EXPECT_EQ(open_loose_videos(videos.path(), options)->size(), 6);
  const auto one = open_loose_videos(videos / "train/real/v2.mkv", options);
  ASSERT_EQ(one->size(), 1);
  EXPECT_EQ(one->fixed_shape().frames, 3);
  EXPECT_EQ(one->label(0), -1);
  const std::vector<std::string> several = {videos / "val/real/v3.mkv", videos / "val/fake/v3.mkv"};
  EXPECT_EQ(open_loose_images(several, true, options)->frames()->frame_count(1), 22);
}

TEST(VideoSourceTest, PhotographsWithAFewVideosAmongThemStayPhotographs) {
  const TempFolder videos, pictures;
  write_both(videos, pictures, "v", 2, 0);
  for (const char* const name : {"a/1.png", "a/2.png", "b/1.png", "b/2.png"}) {
    videos.write(name, png_of({1, 2, 3}, 1, 1, 3));
  }
  VideoRecipe recipe;
  recipe.width = kVideoWidth;
  recipe.height = kVideoHeight;
  write_video_file(videos / "a/2.mov", made_frames(2, kVideoWidth, kVideoHeight), recipe);
  config::DataOptions options = video_options(videos.path());
  options.val_split = config::kNoValidation;
  const auto train = open_datasets(options).train;
  EXPECT_EQ(train->size(), 4);
  EXPECT_FALSE(holds_videos(*train));
  EXPECT_EQ(open_loose_images(videos / "a", true)->size(), 2);
}

TEST(VideoSourceTest, ADamagedVideoIsABadSampleAndNoOtherIs) {
  const TempFolder videos, pictures;
  write_splits(videos, pictures);
  videos.write("train/real/v1.mkv", std::string("\x1A\x45\xDF\xA3 and no more", 16));
  const auto train = open_datasets(video_options(videos.path())).train;
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(train->frames()->frame_count(2), 1);
  EXPECT_NE(train->read(2, buffer, content), "");
  EXPECT_EQ(train->read(3, buffer, content), "");
  EXPECT_EQ(content.width, kVideoWidth);
}

}  // namespace
}  // namespace stoker::data
