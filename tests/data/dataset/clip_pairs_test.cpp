// SPDX-License-Identifier: Apache-2.0
// Videos whose frames are there in high and in low quality.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/loader/sample_reader.h"
#include "data/open_datasets.h"
#include "data/source.h"
#include "made_data.h"

namespace stoker::data {
namespace {

config::DataOptions pair_options(const TempFolder& folder, int64_t clip_frames = 2) {
  config::DataOptions options;
  options.data_dir = folder.path();
  options.clip_frames = clip_frames;
  return options;
}

/// Frame i is 4 x 4 of brightness 10 * i in high and 10 * i + 1 in low quality.
void write_pair(const TempFolder& folder, const std::string& video, int frames) {
  for (int i = 1; i <= frames; ++i) {
    const auto high = static_cast<uint8_t>(10 * i), low = static_cast<uint8_t>(10 * i + 1);
    const std::string name = "/frame_" + std::to_string(i);
    folder.write(video + "/hq" + name + ".png", png_of(flat_pixels(4, 4, {high}), 4, 4, 1));
    folder.write(video + "/lq" + name + ".bmp", bmp_of(flat_pixels(4, 4, {low, low, low}), 4, 4, 3));
  }
}

void write_pairs(const TempFolder& folder) {
  write_pair(folder, "train/real/v2", 12);
  write_pair(folder, "train/real/v1", 3);
  write_pair(folder, "train/fake/v1", 1);
  write_pair(folder, "val/real/v7", 3);
  write_pair(folder, "val/fake/v8", 3);
}

int gray_of(const Source& source, int64_t index, int64_t frame) {
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(source.frames()->read_frame(index, frame, buffer, content), "");
  ImageBuffer image;
  EXPECT_EQ(decode_image(content.bytes, content.size, 1, {}, image), "");
  return image.pixels[0];
}

std::string error_text(const TempFolder& folder, config::DatasetType dataset = config::DatasetType::clips) {
  config::DataOptions options = pair_options(folder);
  options.dataset = dataset;
  return error_of([&] { open_datasets(options); }).what();
}

TEST(ClipPairsTest, FoldersHqAndLqAreRecognisedAsTwoViewsOfAVideo) {
  const TempFolder folder;
  write_pairs(folder);
  const Datasets datasets = open_datasets(pair_options(folder));
  const Source& train = *datasets.train;
  ASSERT_EQ(train.size(), 3);
  EXPECT_EQ(train.fixed_shape().frames, 2);
  EXPECT_EQ(train.fixed_shape().views, 2);
  EXPECT_EQ(train.name(2), folder / "train/real/v2");
  EXPECT_EQ(train.relative_name(0), "fake/v1");
  EXPECT_EQ(train.frames()->frame_count(0), 2) << "one frame, twice";
  ASSERT_EQ(train.frames()->frame_count(2), 4) << "of twelve the two that are seen, twice";
  EXPECT_EQ(train.frames()->frame_name(2, 0), "hq/frame_4.png");
  EXPECT_EQ(train.frames()->frame_name(2, 3), "lq/frame_10.bmp");
  EXPECT_EQ(gray_of(train, 2, 1), 100);
  EXPECT_EQ(gray_of(train, 2, 2), 41);
  EXPECT_EQ(gray_of(train, 2, 3), 101);
  const auto noted = [](const std::string& note) { return note.find("hq and lq") != std::string::npos; };
  EXPECT_TRUE(std::any_of(datasets.notes.begin(), datasets.notes.end(), noted));
}

TEST(ClipPairsTest, AMissingPartnerIsNamedByItsPath) {
  const TempFolder no_low, no_high, no_folder;
  for (const TempFolder* folder : {&no_low, &no_high, &no_folder}) write_pairs(*folder);
  no_low.write("train/real/v1/hq/frame_9.png", png_of({1}, 1, 1, 1));
  EXPECT_NE(error_text(no_low).find(no_low / "train/real/v1/lq/frame_9.png is missing, the partner of "),
            std::string::npos)
      << error_text(no_low);
  no_high.write("val/fake/v8/lq/frame_0.png", png_of({1}, 1, 1, 1));
  EXPECT_NE(error_text(no_high).find(no_high / "val/fake/v8/hq/frame_0.png is missing"), std::string::npos);
  no_folder.write("train/real/v3/hq/frame_1.png", png_of({1}, 1, 1, 1));
  EXPECT_NE(error_text(no_folder).find(no_folder / "train/real/v3/lq/frame_1.png is missing"), std::string::npos);
}

TEST(ClipPairsTest, EveryVideoIsAPairOrNone) {
  const TempFolder mixed, beside, twice, splits;
  for (const TempFolder* folder : {&mixed, &beside, &twice}) write_pairs(*folder);
  mixed.write("train/real/v9/frame_1.png", png_of({1}, 1, 1, 1));
  EXPECT_NE(error_text(mixed).find(mixed / "train/real/v9 has not"), std::string::npos) << error_text(mixed);
  beside.write("train/real/v1/frame_1.png", png_of({1}, 1, 1, 1));
  EXPECT_NE(error_text(beside).find("v1/frame_1.png lies beside the folders hq and lq"), std::string::npos);
  twice.write("train/real/v1/hq/frame_1.jpg", png_of({1}, 1, 1, 1));
  EXPECT_NE(error_text(twice).find("are frames of one name"), std::string::npos) << error_text(twice);
  write_pair(splits, "train/real/v1", 2);
  write_pair(splits, "train/fake/v1", 2);
  splits.write("val/real/v1/frame_1.png", png_of({1}, 1, 1, 1));
  splits.write("val/fake/v1/frame_1.png", png_of({1}, 1, 1, 1));
  EXPECT_NE(error_text(splits).find("training videos are pairs of high and low quality, validation ones are not"),
            std::string::npos);
}

TEST(ClipPairsTest, LooseVideosAreFoundAsPairs) {
  const TempFolder folder;
  write_pair(folder, "a/v1", 4);
  write_pair(folder, "a/v2", 2);
  const auto videos = open_loose_videos(folder.path(), pair_options(folder));
  ASSERT_EQ(videos->size(), 2);
  EXPECT_EQ(videos->name(1), folder / "a/v2");
  EXPECT_EQ(videos->fixed_shape().views, 2);
  const auto one = open_loose_videos(folder / "a/v1", pair_options(folder));
  ASSERT_EQ(one->size(), 1);
  EXPECT_EQ(one->name(0), folder / "a/v1");
  EXPECT_EQ(one->frames()->frame_name(0, 0), "hq/frame_2.png");
}

/// A picture that grows brighter to the right and downwards, in any size.
Bytes ramp_png(int width, int height) {
  Bytes pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      pixels.push_back(static_cast<uint8_t>(std::lround(128 * (x + 0.5) / width + 96 * (y + 0.5) / height)));
    }
  }
  return png_of(pixels, width, height, 1);
}

/// The frames of the first video in some epochs: two frames in high, then in low quality, 8 x 8 each.
std::vector<Bytes> seen(const Source& source) {
  TransformPlan plan;
  plan.training = true;
  plan.shape = {2, 8, 8, 1, Element::uint8, 2};
  plan.train_crop = config::TrainCrop::random_resized;
  plan.scale_min = 0.2;
  plan.hflip = 0.5;
  const DecodeLimits limits;
  SampleReader reader(source, plan, limits, /*seed=*/3);
  StageTimes times;
  std::vector<Bytes> rows;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    Bytes row(static_cast<size_t>(plan.shape.bytes()));
    float no_targets = 0;
    EXPECT_EQ(reader.read_into(0, epoch, /*round=*/0, row.data(), &no_targets, times), "");
    rows.push_back(row);
  }
  return rows;
}

TEST(ClipPairsTest, CropsAndMirrorsAreTheSameForBothViewsWhateverTheirSizes) {
  struct Size {
    int width, height;
  };
  for (const Size low : {Size{32, 32}, Size{16, 16}, Size{32, 12}}) {
    const TempFolder folder;
    for (const std::string name : {"v1", "v2"}) {
      for (const std::string frame : {"/frame_1.png", "/frame_2.png"}) {
        folder.write(name + "/hq" + frame, ramp_png(32, 32));
        folder.write(name + "/lq" + frame, ramp_png(low.width, low.height));
      }
    }
    const auto source = open_loose_videos(folder.path(), pair_options(folder));
    const std::vector<Bytes> rows = seen(*source);
    const int allowed = low.height == 32 ? 0 : 12;  // a pixel of the smaller ones is 14 and 12 levels wide
    int different = 0;
    for (size_t epoch = 0; epoch < rows.size(); ++epoch) {
      const size_t half = rows[epoch].size() / 2;
      for (size_t i = 0; i < half; ++i) {
        ASSERT_NEAR(rows[epoch][i], rows[epoch][half + i], allowed) << "epoch " << epoch << " pixel " << i;
      }
      different += rows[epoch] != rows[0];
    }
    EXPECT_GE(different, 15) << "crops are drawn";
  }
}

}  // namespace
}  // namespace stoker::data
