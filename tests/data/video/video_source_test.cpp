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

std::vector<uint8_t> part_of(const std::vector<uint8_t>& frame, int left, int top, int right, int bottom) {
  std::vector<uint8_t> part;
  for (int y = top; y < bottom; ++y) {
    const auto row = frame.begin() + (y * kVideoWidth + left) * 3;
    part.insert(part.end(), row, row + (right - left) * 3);
  }
  return part;
}

TEST(VideoSourceTest, BoxesGiveTheBitsOfFramesThatWereCutOut) {
  const TempFolder videos, whole, pictures;
  std::string boxes = "Frame,path,x,y,width,height\n";
  for (const std::string name : {"train/fake/v1", "train/real/v2", "val/fake/v3", "val/real/v4"}) {
    const int frames = 5, seed = name.back();
    write_both(videos, whole, name, frames, seed);
    const auto made = made_frames(frames, kVideoWidth, kVideoHeight, seed);
    // Frame 1 has no box: that of frame 0 is as near as that of frame 2. The last lies across two sides.
    boxes +=
        core::format("4,{0}.mkv,20,-3,9.4,8\n0,{0}.mkv,2.4,3.6,10,8\n2,{0}.mkv,4,5,6,7\n3,{0}.mkv,0,0,24,16\n", name);
    const int corners[][4] = {{2, 4, 12, 12}, {2, 4, 12, 12}, {4, 5, 10, 12}, {0, 0, 24, 16}, {20, 0, 24, 5}};
    for (int i = 0; i < frames; ++i) {
      const auto& [left, top, right, bottom] = corners[i];
      pictures.write(
          core::format("{}/frame_{}.png", name, i),
          png_of(part_of(made[static_cast<size_t>(i)], left, top, right, bottom), right - left, bottom - top, 3));
    }
  }
  videos.write("faces.csv", boxes);
  config::DataOptions options = video_options(videos.path());
  const std::string without = open_datasets(options).train->fingerprint();
  options.boxes = videos / "faces.csv";
  const Datasets cut = open_datasets(options);
  EXPECT_NE(cut.train->fingerprint(), without);
  const config::DataOptions of_pictures = video_options(pictures.path());
  for (const bool training : {true, false}) {
    const std::string expected = batches_of(open_datasets(of_pictures).train, of_pictures, training, 1);
    for (const int64_t workers : {0, 3}) {
      EXPECT_TRUE(batches_of(cut.train, options, training, workers) == expected) << training << " " << workers;
    }
  }
  config::DataOptions of_folders = video_options(whole.path());
  of_folders.boxes = options.boxes;
  EXPECT_NE(std::string(error_of([&] { open_datasets(of_folders); }).what()).find("folders of frames"),
            std::string::npos);
}

TEST(VideoSourceTest, BoxesThatDoNotFitAreNamedAndVideosWithoutAreBad) {
  const TempFolder videos, pictures;
  write_splits(videos, pictures);
  config::DataOptions options = video_options(videos.path());
  options.val_split = config::kNoValidation;
  options.boxes = videos / "faces.csv";
  const auto message = [&](const std::string& rows) {
    videos.write("faces.csv", "path,frame,x,y,width,height\n" + rows);
    return std::string(error_of([&] { open_datasets(options); }).what());
  };
  const auto expect_in = [&](const std::string& rows, const std::string& part) {
    EXPECT_NE(message(rows).find(part), std::string::npos) << message(rows);
  };
  expect_in("v1.mkv,0,1,1,4,4\n", "has no box of any video");
  expect_in("train/fake/v1.mkv,0,1,1,4,4\ntrain/fake/v1.mkv,0,1,1,5,5\n", "two boxes of frame 0");
  expect_in("train/fake/v1.mkv,0,1,1,4,4\ntrain/fake/v1.mkv,1,1,one,5,5\n", "faces.csv:3: y is 'one'");
  expect_in("train/fake/v1.mkv,-1,1,1,4,4\n", "faces.csv:2: frame is '-1'");
  expect_in("train/fake/v1.mkv,0,1,1,0,4\n", "width is '0'");
  expect_in("train/fake/v1.mkv,0,nan,1,4,4\n", "x is 'nan'");
  videos.write("faces.csv", "path,frame,x,y,w,h\n");
  EXPECT_NE(std::string(error_of([&] { open_datasets(options); }).what()).find("no column width"), std::string::npos);
  videos.write("faces.csv", "path,frame,x,y,width,height\ntrain/fake/v1.mkv,0,1,1,4,4\ntrain/fake/v2.mkv,0,30,1,4,4\n");
  const auto train = open_datasets(options).train;
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(train->read(0, buffer, content), "");
  EXPECT_EQ(content.width, 4);
  EXPECT_EQ(train->read(1, buffer, content),
            "the box of frame 0, 30 to 34 by 1 to 5, lies outside of its 24 x 16 pixels");
  EXPECT_NE(train->read(2, buffer, content).find("has no box in"), std::string::npos);
}

TEST(VideoSourceTest, ABoxOfTheFolderOfAPairHoldsForBoth) {
  const TempFolder videos, pictures;
  for (const char* const name : {"train/fake/v1/hq", "train/fake/v1/lq", "train/real/v2/hq", "train/real/v2/lq"}) {
    write_both(videos, pictures, name, 3, name[11]);
  }
  videos.write("faces.csv", "path,frame,x,y,width,height\ntrain/fake/v1,0,1,1,4,4\ntrain/real/v2/hq.mkv,0,1,1,5,5\n");
  config::DataOptions options = video_options(videos.path(), 2);
  options.val_split = config::kNoValidation;
  options.boxes = videos / "faces.csv";
  const auto train = open_datasets(options).train;
  std::vector<uint8_t> buffer;
  SampleContent content;
  for (const int64_t frame : {0, 5}) {
    EXPECT_EQ(train->frames()->read_frame(0, frame, buffer, content), "");
    EXPECT_EQ(content.width, 4);
  }
  EXPECT_EQ(train->frames()->read_frame(1, 0, buffer, content), "");
  EXPECT_NE(train->frames()->read_frame(1, 5, buffer, content), "") << "lq.mkv has none";
}

}  // namespace
}  // namespace stoker::data
