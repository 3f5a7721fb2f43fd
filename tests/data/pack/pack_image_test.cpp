// SPDX-License-Identifier: Apache-2.0
#include "data/pack/pack_image.h"

#include <gtest/gtest.h>

#include "data/image/jpeg/jpeg_encode.h"
#include "made_data.h"

namespace stoker::data {
namespace {

constexpr int kWidth = 50, kHeight = 37;

SampleContent content_of(const Bytes& file) {
  SampleContent content;
  content.bytes = file.data();
  content.size = file.size();
  return content;
}

struct Packed {
  std::string problem;
  Bytes file;
  ImageFormat format = ImageFormat::unknown;
};

Packed pack(const PackRecipe& recipe, const SampleContent& content) {
  Packed packed;
  packed.problem = ImagePacker(recipe).pack(content, packed.file, packed.format);
  return packed;
}

ImageBuffer pixels_in(const Bytes& file, int channels = 3) {
  ImageBuffer image;
  EXPECT_EQ(decode_image(file.data(), file.size(), channels, DecodeLimits(), image), "");
  image.pixels.resize(static_cast<size_t>(image.width * image.height * channels));
  return image;
}

ImageHeader header_in(const Bytes& file) {
  ImageHeader header;
  EXPECT_EQ(read_header(file.data(), file.size(), DecodeLimits(), header), "");
  return header;
}

/// Whether a JPEG is baseline: its frame begins with SOF0.
bool is_baseline(const Bytes& file) {
  for (size_t at = 2; at + 4 < file.size(); at += 2 + size_t{file[at + 2]} * 256 + file[at + 3]) {
    if (file[at + 1] == 0xC0) return true;
    if (file[at + 1] == 0xC1 || file[at + 1] == 0xC2 || file[at + 1] == 0xDA) return false;
  }
  return false;
}

TEST(PackImageTest, BytesStayAsTheyAreUnlessAskedOtherwise) {
  const Bytes pixels = pattern_pixels(kWidth, kHeight, 3);
  for (const Bytes& file : {jpeg_of(pixels, kWidth, kHeight), png_of(pixels, kWidth, kHeight, 3),
                            webp_of(pixels, kWidth, kHeight, 3), bmp_of(pixels, kWidth, kHeight, 3)}) {
    PackRecipe recipe;
    EXPECT_EQ(pack(recipe, content_of(file)).file, file);
    recipe.max_side = kWidth;
    recipe.progressive_to_baseline = true;
    EXPECT_EQ(pack(recipe, content_of(file)).file, file);
    EXPECT_EQ(pack(recipe, content_of(file)).format, header_in(file).format);
  }
}

TEST(PackImageTest, LargerImagesAreResizedToTheLongerSide) {
  const Bytes pixels = pattern_pixels(kWidth, kHeight, 3);
  PackRecipe recipe;
  recipe.max_side = 20;
  const Packed jpeg = pack(recipe, content_of(jpeg_of(pixels, kWidth, kHeight)));
  EXPECT_EQ(jpeg.format, ImageFormat::jpeg);
  EXPECT_EQ(header_in(jpeg.file).width, 20);
  EXPECT_EQ(header_in(jpeg.file).height, 15);
  const Packed png = pack(recipe, content_of(png_of(pixels, kWidth, kHeight, 3)));
  EXPECT_EQ(png.format, ImageFormat::png);
  EXPECT_EQ(header_in(png.file).height, 15);
  const Packed flat = pack(recipe, content_of(png_of(pattern_pixels(400, 1, 3), 400, 1, 3)));
  EXPECT_EQ(header_in(flat.file).width, 20);
  EXPECT_EQ(header_in(flat.file).height, 1);
}

TEST(PackImageTest, ResizedPngsHoldTheResamplersPixels) {
  const Bytes pixels = pattern_pixels(40, 40, 3);
  PackRecipe recipe;
  recipe.max_side = 10;
  const ImageBuffer image = pixels_in(pack(recipe, content_of(png_of(pixels, 40, 40, 3))).file);
  ResampleTask task;
  task.source = pixels.data();
  task.source_stride = 120;
  task.source_width = task.source_height = 40;
  task.channels = 3;
  task.resized_width = task.resized_height = task.out_width = task.out_height = 10;
  ResampleScratch scratch;
  Bytes wanted(300);
  resample(task, scratch, wanted.data());
  EXPECT_EQ(Bytes(image.pixels.begin(), image.pixels.end()), wanted);
}

TEST(PackImageTest, AQualityMakesEveryImageAJpegOfThatQuality) {
  const Bytes pixels = pattern_pixels(kWidth, kHeight, 3);
  PackRecipe recipe;
  recipe.quality = 95;
  const Packed fine = pack(recipe, content_of(png_of(pixels, kWidth, kHeight, 3)));
  recipe.quality = 30;
  const Packed coarse = pack(recipe, content_of(png_of(pixels, kWidth, kHeight, 3)));
  EXPECT_EQ(fine.format, ImageFormat::jpeg);
  EXPECT_LT(coarse.file.size(), fine.file.size());
  const Bytes gray = png_of(pattern_pixels(kWidth, kHeight, 1), kWidth, kHeight, 1);
  EXPECT_EQ(header_in(pack(recipe, content_of(gray)).file).channels, 1);
}

TEST(PackImageTest, ARangeBecomesPixelsOfAllImagesOnceSomeAreResized) {
  PackRecipe recipe;
  recipe.limits.range = {900, 1300};
  const Bytes small = png16_of({900, 1000, 1100, 1300}, 2, 2, 1);
  EXPECT_EQ(pack(recipe, content_of(small)).file, small) << "without --max-side bytes stay";
  recipe.max_side = 10;
  const Packed packed = pack(recipe, content_of(small));
  EXPECT_EQ(header_in(packed.file).bits, 8);
  const ImageBuffer image = pixels_in(packed.file, 1);
  EXPECT_EQ(Bytes(image.pixels.begin(), image.pixels.end()), Bytes({0, 64, 128, 255}));
}

TEST(PackImageTest, ReencodedImagesStandUpright) {
  const Bytes file = jpeg_with_exif(jpeg_of(pattern_pixels(kWidth, kHeight, 3), kWidth, kHeight), 6);
  PackRecipe recipe;
  recipe.quality = 90;
  const ImageHeader header = header_in(pack(recipe, content_of(file)).file);
  EXPECT_EQ(header.width, kHeight);
  EXPECT_EQ(header.height, kWidth);
  EXPECT_EQ(header.orientation, 1);
}

TEST(PackImageTest, ProgressiveBecomesBaselineWithTheSamePixels) {
  PackRecipe recipe;
  recipe.progressive_to_baseline = true;
  for (const int channels : {1, 3, 4}) {
    for (const int sampling : {1, 2}) {
      JpegRecipe made;
      made.channels = channels;
      made.progressive = true;
      made.luma_columns = made.luma_rows = channels == 3 ? sampling : 1;
      made.adobe_marker = channels == 4;
      const Bytes file = jpeg_of(pattern_pixels(kWidth, kHeight, channels), kWidth, kHeight, made);
      ASSERT_FALSE(is_baseline(file));
      const Packed packed = pack(recipe, content_of(file));
      EXPECT_EQ(packed.problem, "");
      EXPECT_TRUE(is_baseline(packed.file)) << channels;
      EXPECT_EQ(pixels_in(packed.file).pixels, pixels_in(file).pixels) << channels << " " << sampling;
    }
  }
}

TEST(PackImageTest, BaselineKeepsTheMarkersOfTheFile) {
  JpegRecipe made;
  made.progressive = true;
  const Bytes file = jpeg_with_exif(jpeg_of(pattern_pixels(kWidth, kHeight, 3), kWidth, kHeight, made), 8);
  PackRecipe recipe;
  recipe.progressive_to_baseline = true;
  const Packed packed = pack(recipe, content_of(file));
  EXPECT_TRUE(is_baseline(packed.file));
  EXPECT_EQ(header_in(packed.file).orientation, 8);
  EXPECT_EQ(pixels_in(packed.file).pixels, pixels_in(file).pixels);
}

TEST(PackImageTest, DamageIsAnErrorWhereTheImageIsWrittenAnew) {
  JpegRecipe made;
  made.progressive = true;
  Bytes file = jpeg_of(pattern_pixels(kWidth, kHeight, 3), kWidth, kHeight, made);
  PackRecipe baseline, smaller, bytes;
  baseline.progressive_to_baseline = true;
  smaller.max_side = 10;
  file.resize(file.size() * 2 / 3);
  EXPECT_NE(pack(baseline, content_of(file)).problem, "");
  EXPECT_NE(pack(smaller, content_of(file)).problem, "");
  EXPECT_EQ(pack(bytes, content_of(file)).problem, "");
  file.resize(10);
  EXPECT_NE(pack(bytes, content_of(file)).problem, "");
  EXPECT_NE(pack(bytes, content_of({'G', 'I', 'F', '8', '9', 'a', 0, 0, 0, 0, 0, 0})).problem, "");
}

TEST(PackImageTest, PixelsWithoutAFileBecomeAPng) {
  const Bytes pixels = pattern_pixels(28, 20, 1);
  SampleContent content = content_of(pixels);
  content.width = 28;
  content.height = 20;
  content.channels = 1;
  const Packed packed = pack(PackRecipe(), content);
  EXPECT_EQ(packed.format, ImageFormat::png);
  const ImageBuffer back = pixels_in(packed.file, 1);
  EXPECT_EQ(Bytes(back.pixels.begin(), back.pixels.end()), pixels);
}

}  // namespace
}  // namespace stoker::data
