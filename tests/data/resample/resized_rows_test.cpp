// SPDX-License-Identifier: Apache-2.0
// An image that is resized while it is decoded equals, bit for bit, the resize of a part of the whole image.
#include "data/resample/resample.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "data/image/decode.h"
#include "made_data.h"

namespace stoker::data {
namespace {

constexpr int kSourceWidth = 131, kSourceHeight = 177;

struct Part {
  int left, top;
  ResampleTask task;
};

/// Any box, shrunk or enlarged, of which any window is written.
Part drawn_part(core::Rng& rng, int channels) {
  const auto between = [&rng](int low, int high) {
    return low + static_cast<int>(rng.below(static_cast<uint64_t>(high - low + 1)));
  };
  Part part;
  part.left = between(0, kSourceWidth - 1);
  part.top = between(0, kSourceHeight - 1);
  ResampleTask& task = part.task;
  task.channels = channels;
  task.source_width = between(1, kSourceWidth - part.left);
  task.source_height = between(1, kSourceHeight - part.top);
  task.resized_width = between(1, 90);
  task.resized_height = between(1, 90);
  task.out_width = between(1, task.resized_width);
  task.out_height = between(1, task.resized_height);
  task.window_left = between(0, task.resized_width - task.out_width);
  task.window_top = between(0, task.resized_height - task.out_height);
  task.mirror = rng.chance(0.5);
  return part;
}

Bytes output_of(const ResampleTask& task) {
  return Bytes(static_cast<size_t>(task.out_width * task.out_height * task.channels));
}

Bytes resized_whole(const ImageBuffer& whole, const Part& part) {
  ResampleTask task = part.task;
  task.source_stride = int64_t{whole.width} * task.channels;
  task.source = whole.pixels.data() + part.top * task.source_stride + int64_t{part.left} * task.channels;
  Bytes out = output_of(task);
  ResampleScratch scratch;
  resample(task, scratch, out.data());
  return out;
}

void expect_same_as_whole(const Bytes& file, int channels) {
  ImageHeader header;
  ASSERT_EQ(read_header(file.data(), file.size(), {}, header), "");
  ImageBuffer whole;
  ASSERT_EQ(decode_image(file.data(), file.size(), channels, {}, whole), "");
  core::Rng rng(1, core::RngPurpose::augment, 0, 0);
  ResampleScratch scratch;  // as a worker keeps it
  ScratchBytes band;
  for (int i = 0; i < 300; ++i) {
    const Part part = drawn_part(rng, channels);
    Bytes out = output_of(part.task);
    ResizedRows rows(part.task, part.left, part.top, scratch, band, out.data());
    ASSERT_TRUE(can_decode_rows(header, rows.needed()));
    ASSERT_EQ(decode_rows(file.data(), file.size(), channels, {}, rows.needed(), rows), "");
    ASSERT_EQ(out, resized_whole(whole, part))
        << part.task.source_width << "x" << part.task.source_height << " at " << part.left << "," << part.top << " to "
        << part.task.resized_width << "x" << part.task.resized_height << ", case " << i;
  }
}

TEST(ResizedRowsTest, EqualTheResizeOfTheWhole) {
  const Bytes rgb = pattern_pixels(kSourceWidth, kSourceHeight, 3),
              cmyk = pattern_pixels(kSourceWidth, kSourceHeight, 4);
  std::vector<JpegRecipe> recipes = {{3}, {3, /*progressive=*/true}, {4}};
  recipes.push_back({3, false, false, 90, 1, 1, /*restart_rows=*/1});
  for (const JpegRecipe& recipe : recipes) {
    SCOPED_TRACE(testing::Message() << recipe.channels << " channels, progressive " << recipe.progressive);
    const Bytes file = jpeg_of(recipe.channels == 3 ? rgb : cmyk, kSourceWidth, kSourceHeight, recipe);
    expect_same_as_whole(file, 3);
    expect_same_as_whole(file, 1);
  }
}

TEST(ResizedRowsTest, ADecodeThatStartsOverLeavesNothingOfTheFirstTry) {
  const Bytes pixels = pattern_pixels(40, 40, 3);
  ResampleTask task;
  task.channels = 3;
  task.source_width = task.source_height = 40;
  task.resized_width = task.out_width = task.resized_height = task.out_height = 25;
  Bytes out = output_of(task), expected = output_of(task);
  ResampleScratch scratch;
  ScratchBytes band;
  ResizedRows rows(task, 0, 0, scratch, band, out.data());
  rows.begin({0, 0, 40, 40}, 3);
  for (int y = 0; y < 30; ++y) std::fill_n(rows.next_row(), 120, uint8_t{99});
  rows.begin({0, 0, 40, 40}, 3);
  for (int y = 0; y < 40; ++y) std::copy_n(pixels.begin() + y * 120, 120, rows.next_row());
  rows.end();
  task.source = pixels.data();
  task.source_stride = 120;
  ResampleScratch other;
  resample(task, other, expected.data());
  EXPECT_EQ(out, expected);
}

TEST(ResizedRowsTest, OnlyRowsThatOutputsDependOnAreDecoded) {
  ResampleTask task;
  task.channels = 3;
  task.source_width = task.source_height = 256;
  task.resized_width = task.resized_height = 256;
  task.out_width = task.out_height = 224;
  task.window_left = task.window_top = 16;
  Bytes out = output_of(task);
  ResampleScratch scratch;
  ScratchBytes band;
  const ResizedRows rows(task, 5, 7, scratch, band, out.data());
  EXPECT_EQ(rows.needed().top, 7 + 16);
  EXPECT_EQ(rows.needed().height, 225);  // the last output's second tap, which weighs nothing here
}

TEST(ResizedRowsTest, OtherImagesAreDecodedAsAWhole) {
  const Bytes rgb = pattern_pixels(21, 10, 3);
  for (const Bytes& file : {png_of(rgb, 21, 10, 3), jpeg_with_exif(jpeg_of(rgb, 21, 10), 6)}) {
    ImageHeader header;
    ASSERT_EQ(read_header(file.data(), file.size(), {}, header), "");
    EXPECT_FALSE(can_decode_rows(header, {0, 0, 2, 2}));
  }
  ImageHeader header;
  const Bytes jpeg = jpeg_of(rgb, 21, 10);
  ASSERT_EQ(read_header(jpeg.data(), jpeg.size(), {}, header), "");
  EXPECT_TRUE(can_decode_rows(header, {0, 0, 21, 10}));
  EXPECT_FALSE(can_decode_rows(header, {0, 0, 22, 10}));
  EXPECT_FALSE(can_decode_rows(header, {-1, 0, 2, 2}));
}

}  // namespace
}  // namespace stoker::data
