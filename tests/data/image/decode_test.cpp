// SPDX-License-Identifier: Apache-2.0
#include "data/image/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "made_data.h"

namespace stoker::data {
namespace {

struct Decoded {
  std::string reason;
  int width = 0, height = 0;
  Bytes pixels;
};

Decoded decoded(const Bytes& file, int channels, const DecodeLimits& limits = {}) {
  ImageBuffer image;
  Decoded result;
  result.reason = decode_image(file.data(), file.size(), channels, limits, image);
  result.width = image.width;
  result.height = image.height;
  if (result.reason.empty()) {
    result.pixels.assign(image.pixels.begin(), image.pixels.begin() + int64_t{image.width} * image.height * channels);
  }
  return result;
}

/// All pixels are `colour`, give or take what JPEG loses.
void expect_flat(const Decoded& image, const Bytes& colour, int tolerance) {
  ASSERT_EQ(image.reason, "");
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_NEAR(image.pixels[i], colour[i % colour.size()], tolerance) << "at byte " << i;
  }
}

TEST(DecodeTest, LosslessFormatsGiveThePixelsBack) {
  const Bytes rgb = pattern_pixels(21, 10, 3), gray = pattern_pixels(21, 10, 1);
  EXPECT_EQ(decoded(png_of(rgb, 21, 10, 3), 3).pixels, rgb);
  EXPECT_EQ(decoded(bmp_of(rgb, 21, 10, 3), 3).pixels, rgb);
  EXPECT_EQ(decoded(webp_of(rgb, 21, 10, 3), 3).pixels, rgb);
  EXPECT_EQ(decoded(png_of(gray, 21, 10, 1), 1).pixels, gray);
  EXPECT_EQ(decoded(bmp_of(gray, 21, 10, 1), 1).pixels, gray);
}

TEST(DecodeTest, GrayRepeatsIntoRgb) {
  const Decoded image = decoded(png_of({7, 200}, 2, 1, 1), 3);
  EXPECT_EQ(image.pixels, Bytes({7, 7, 7, 200, 200, 200}));
  expect_flat(decoded(jpeg_of(flat_pixels(16, 16, {90}), 16, 16, {1}), 3), {90, 90, 90}, 1);
}

TEST(DecodeTest, RgbBecomesBt601Luma) {
  const Bytes colours = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30};
  EXPECT_EQ(decoded(png_of(colours, 4, 1, 3), 1).pixels, Bytes({76, 150, 29, 18}));
  expect_flat(decoded(jpeg_of(flat_pixels(16, 16, {255, 0, 0}), 16, 16), 1), {76}, 1);
}

TEST(DecodeTest, AlphaIsCompositedOverBlack) {
  const Bytes rgba = {200, 100, 50, 255, 200, 100, 50, 128, 200, 100, 50, 0};
  const Bytes expected = {200, 100, 50, 100, 50, 25, 0, 0, 0};
  EXPECT_EQ(decoded(png_of(rgba, 3, 1, 4), 3).pixels, expected);
  EXPECT_EQ(decoded(webp_of(rgba, 3, 1, 4), 3).pixels, expected);
}

TEST(DecodeTest, SixteenBitsAreDividedBy257AndRounded) {
  // 257 is 1.0, 128 is 0.498, 129 is 0.502; 65535 is 255.
  EXPECT_EQ(decoded(png16_of({0, 257, 128, 129, 65535, 32896}, 6, 1, 1), 1).pixels, Bytes({0, 1, 0, 1, 255, 128}));
  EXPECT_EQ(decoded(png16_of({257, 514, 65535}, 1, 1, 3), 3).pixels, Bytes({1, 2, 255}));
}

TEST(DecodeTest, PalettesAreLookedUp) {
  const Bytes palette = {10, 20, 30, 200, 150, 100};
  const Bytes file = palette_png(2, 1, palette, {0, 0x40});  // one row: no filter, then pixels 0 and 1 as bits
  EXPECT_EQ(decoded(file, 3).pixels, palette);
}

TEST(DecodeTest, JpegPixelsAreThoseOfTheReferenceDecoder) {
  // OpenCV decodes with the same library at its defaults: exact transform, smooth upsampling of 4:2:0 chroma.
  const Bytes file = jpeg_of(pattern_pixels(67, 45, 3), 67, 45);
  cv::Mat reference = cv::imdecode(file, cv::IMREAD_COLOR);
  Bytes expected;
  for (int y = 0; y < reference.rows; ++y) {
    for (int x = 0; x < reference.cols; ++x) {
      for (int c = 2; c >= 0; --c) expected.push_back(reference.at<cv::Vec3b>(y, x)[c]);
    }
  }
  EXPECT_EQ(decoded(file, 3).pixels, expected);
  EXPECT_EQ(decoded(jpeg_of(pattern_pixels(67, 45, 3), 67, 45, {3, /*progressive=*/true}), 3).pixels, expected);
}

/// Compares every region of a grid with the same part of the whole decode.
void expect_regions_of_whole(const Bytes& file, int channels) {
  ImageHeader header;
  ASSERT_EQ(read_header(file.data(), file.size(), {}, header), "");
  const Decoded whole = decoded(file, channels);
  ASSERT_EQ(whole.reason, "");
  ImageBuffer image;
  for (int top = 0; top < header.height; top += 13) {
    for (int left = 0; left < header.width; left += 8) {
      for (const int size : {1, 40}) {
        const Region wanted{left, top, std::min(size, header.width - left), std::min(size + 3, header.height - top)};
        Region got = wanted;
        ASSERT_EQ(decode_region(file.data(), file.size(), channels, {}, header, got, image), "");
        ASSERT_LE(got.left, wanted.left);
        ASSERT_GE(got.left + got.width, wanted.left + wanted.width);
        for (int y = 0; y < wanted.height; ++y) {
          const int row = wanted.top + y;
          const auto expected = whole.pixels.begin() + (int64_t{row} * header.width + wanted.left) * channels;
          const auto found =
              image.pixels.begin() + (int64_t{row - got.top} * got.width + wanted.left - got.left) * channels;
          ASSERT_TRUE(std::equal(expected, expected + wanted.width * channels, found))
              << "row " << row << " of " << wanted.width << "x" << wanted.height << " at " << left << "," << top;
        }
      }
    }
  }
}

TEST(DecodeTest, ARegionIsBitForBitAPartOfTheWhole) {
  const Bytes rgb = pattern_pixels(131, 77, 3), gray = pattern_pixels(131, 77, 1), cmyk = pattern_pixels(131, 77, 4);
  std::vector<JpegRecipe> recipes = {{3, /*progressive=*/true}, {1}, {4}};
  for (const auto& [columns, rows] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}}) {
    recipes.push_back({3, false, false, 90, columns, rows});
    recipes.push_back({3, false, false, 90, columns, rows, /*restart_rows=*/1});
  }
  JpegRecipe ycck = {4};
  ycck.adobe_marker = ycck.ycck = true;
  recipes.push_back(ycck);
  for (const JpegRecipe& recipe : recipes) {
    SCOPED_TRACE(testing::Message() << recipe.channels << " channels, " << recipe.luma_columns << "x"
                                    << recipe.luma_rows << ", progressive " << recipe.progressive);
    const Bytes file = jpeg_of(recipe.channels == 1 ? gray : recipe.channels == 3 ? rgb : cmyk, 131, 77, recipe);
    expect_regions_of_whole(file, 3);
    expect_regions_of_whole(file, 1);
  }
  expect_regions_of_whole(jpeg_with_exif(jpeg_of(rgb, 131, 77), 8), 3);
  expect_regions_of_whole(png_of(rgb, 131, 77, 3), 3);
}

TEST(DecodeTest, ARegionReadsLessThanTheWhole) {
  const Bytes file = jpeg_of(pattern_pixels(200, 200, 3), 200, 200);
  ImageHeader header;
  ASSERT_EQ(read_header(file.data(), file.size(), {}, header), "");
  ImageBuffer image;
  Region region{100, 50, 20, 20};
  EXPECT_EQ(decode_region(file.data(), file.size(), 3, {}, header, region, image), "");
  EXPECT_EQ(region.left, 80);  // blocks of 16 pixels, and one more on each side
  EXPECT_EQ(region.width, 64);
  EXPECT_EQ(region.top, 50);
  EXPECT_EQ(region.height, 20);
}

TEST(DecodeTest, ARegionAboveTheCutOfAFileIsStillBad) {
  const Bytes whole = jpeg_of(pattern_pixels(200, 200, 3), 200, 200);
  const Bytes cut(whole.begin(), whole.end() - 100);
  ImageHeader header;
  ASSERT_EQ(read_header(cut.data(), cut.size(), {}, header), "");
  ImageBuffer image;
  Region region{0, 0, 20, 20};
  EXPECT_EQ(decode_region(cut.data(), cut.size(), 3, {}, header, region, image),
            "JPEG: cut short: there is no end marker");
  Bytes padded = whole;
  padded.resize(padded.size() + 1000);  // as some cameras do
  EXPECT_EQ(decode_region(padded.data(), padded.size(), 3, {}, header, region, image), "");
}

TEST(DecodeTest, CmykBecomesRgbWhoseInksAreInvertedWithAdobesMarkOrWithout) {
  // Half of the cyan ink, no black: red is halved.
  for (const bool adobe : {false, true}) {
    const auto flat = [&](const Bytes& inks) { return jpeg_of(flat_pixels(16, 16, inks), 16, 16, {4, false, adobe}); };
    expect_flat(decoded(flat({127, 255, 255, 255}), 3), {127, 255, 255}, 2);
    expect_flat(decoded(flat({255, 255, 255, 127}), 3), {127, 127, 127}, 2);
    expect_flat(decoded(flat({255, 255, 255, 127}), 1), {127}, 2);
  }
}

TEST(DecodeTest, ExifOrientationIsApplied) {
  // Stored:  1 2 3   What each orientation makes of it, row by row (EXIF 2.3, tag 0x0112).
  //          4 5 6
  const Bytes png = png_of({1, 2, 3, 4, 5, 6}, 3, 2, 1);
  const Bytes expected[] = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
                            {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Decoded image = decoded(png_with_chunk(png, "eXIf", exif_with_orientation(orientation)), 1);
    EXPECT_EQ(image.reason, "");
    EXPECT_EQ(image.width, orientation >= 5 ? 2 : 3) << orientation;
    EXPECT_EQ(image.pixels, expected[orientation - 1]) << orientation;
  }
}

TEST(DecodeTest, ExifOrientationOfAJpegSwapsItsSides) {
  const Bytes file = jpeg_with_exif(jpeg_of(pattern_pixels(40, 20, 3), 40, 20), 6);
  ImageHeader header;
  EXPECT_EQ(read_header(file.data(), file.size(), {}, header), "");
  EXPECT_EQ(header.width, 20);
  EXPECT_EQ(header.height, 40);
  EXPECT_EQ(header.orientation, 6);
  const Decoded image = decoded(file, 3);
  EXPECT_EQ(image.width, 20);
  EXPECT_EQ(image.height, 40);
}

TEST(DecodeTest, DamagedExifIsNoOrientation) {
  Bytes exif = exif_with_orientation(9);
  EXPECT_EQ(decoded(png_with_chunk(png_of({1, 2}, 2, 1, 1), "eXIf", exif), 1).width, 2);
  exif[4] = 0xFF;  // the directory lies outside
  EXPECT_EQ(decoded(png_with_chunk(png_of({1, 2}, 2, 1, 1), "eXIf", exif), 1).width, 2);
}

TEST(DecodeTest, HeadersHaveFormatSizeAndChannels) {
  const auto header_of = [](const Bytes& file) {
    ImageHeader header;
    EXPECT_EQ(read_header(file.data(), file.size(), {}, header), "");
    return header;
  };
  const Bytes rgb = pattern_pixels(13, 7, 3), gray = pattern_pixels(13, 7, 1), rgba = pattern_pixels(13, 7, 4);
  const std::pair<Bytes, ImageHeader> cases[] = {{jpeg_of(rgb, 13, 7), {ImageFormat::jpeg, 13, 7, 3, 1}},
                                                 {jpeg_of(gray, 13, 7, {1}), {ImageFormat::jpeg, 13, 7, 1, 1}},
                                                 {jpeg_of(rgb, 13, 7, {3, true}), {ImageFormat::jpeg, 13, 7, 3, 1}},
                                                 {png_of(rgb, 13, 7, 3), {ImageFormat::png, 13, 7, 3, 1}},
                                                 {png_of(gray, 13, 7, 1), {ImageFormat::png, 13, 7, 1, 1}},
                                                 {png_of(rgba, 13, 7, 4), {ImageFormat::png, 13, 7, 4, 1}},
                                                 {bmp_of(rgb, 13, 7, 3), {ImageFormat::bmp, 13, 7, 3, 1}},
                                                 {webp_of(rgb, 13, 7, 3), {ImageFormat::webp, 13, 7, 3, 1}},
                                                 {webp_of(rgba, 13, 7, 4), {ImageFormat::webp, 13, 7, 4, 1}}};
  for (const auto& [file, expected] : cases) {
    const ImageHeader header = header_of(file);
    EXPECT_EQ(header.format, expected.format);
    EXPECT_EQ(header.width, expected.width);
    EXPECT_EQ(header.height, expected.height);
    EXPECT_EQ(header.channels, expected.channels);
  }
  Bytes lossy;
  cv::imencode(".webp", cv::Mat(7, 13, CV_8UC3, cv::Scalar(1, 2, 3)), lossy, {cv::IMWRITE_WEBP_QUALITY, 80});
  EXPECT_EQ(header_of(lossy).width, 13);
  EXPECT_EQ(header_of(lossy).height, 7);
}

TEST(DecodeTest, AnimatedWebpGivesItsFirstFrame) {
  const Bytes red = flat_pixels(4, 4, {255, 0, 0}), blue = flat_pixels(8, 8, {0, 0, 255});
  const Bytes file = animated_webp(8, 8, {{2, 2, 4, 4, webp_of(red, 4, 4, 3)}, {0, 0, 8, 8, webp_of(blue, 8, 8, 3)}});
  const Decoded image = decoded(file, 3);
  ASSERT_EQ(image.reason, "");
  EXPECT_EQ(image.width, 8);
  const auto pixel = [&](int x, int y) {
    const auto at = image.pixels.begin() + 3 * (y * 8 + x);
    return Bytes(at, at + 3);
  };
  EXPECT_EQ(pixel(0, 0), Bytes({0, 0, 0}));
  EXPECT_EQ(pixel(2, 2), Bytes({255, 0, 0}));
  EXPECT_EQ(pixel(5, 5), Bytes({255, 0, 0}));
  EXPECT_EQ(pixel(6, 6), Bytes({0, 0, 0}));
}

TEST(DecodeTest, AnAnimationsFrameHasTheSizeOfItsHeader) {
  // A decoder would take memory for what lies inside, although the canvas is within the limits.
  const Bytes inner = webp_of(flat_pixels(64, 64, {255, 0, 0}), 64, 64, 3);
  EXPECT_EQ(decoded(animated_webp(8, 8, {{0, 0, 8, 8, inner}}), 3).reason,
            "WebP frame of 64x64 pixels where 8x8 are promised");
}

TEST(DecodeTest, ABmpsFourthByteIsAlphaOnlyWhereItsHeaderDeclaresIt) {
  const Bytes pixels = {50, 100, 200, 128};
  EXPECT_EQ(decoded(bmp32_of(1, 1, pixels, /*alpha_mask=*/false), 3).pixels, Bytes({200, 100, 50}));
  EXPECT_EQ(decoded(bmp32_of(1, 1, pixels, /*alpha_mask=*/true), 3).pixels, Bytes({100, 50, 25}));
}

TEST(DecodeTest, AnEmptyFileIsReportedAsEmpty) { EXPECT_EQ(decoded({}, 3).reason, "empty file"); }

TEST(DecodeTest, OtherContentIsNamed) {
  EXPECT_EQ(decoded({0, 0, 0, 24, 'f', 't', 'y', 'p', 'h', 'e', 'i', 'c'}, 3).reason,
            "HEIC is not read; convert it: heif-convert FILE FILE.jpg");
  EXPECT_EQ(decoded({'h', 'e', 'l', 'l', 'o'}, 3).reason,
            "not an image: the first bytes are those of no format that is read (JPEG, PNG, BMP, WebP, TIFF, GIF, PNM, "
            "JPEG 2000)");
}

TEST(DecodeTest, CommandsNameTheFile) {
  const TempFolder folder;
  folder.write("a b.heic", "x");
  const std::string path = folder / "a b.heic", word = "'" + path + "'";
  EXPECT_EQ(bad_file_text(path, "heif-convert FILE FILE.jpg"), path + ": heif-convert " + word + " " + word + ".jpg");
  EXPECT_EQ(bad_file_text(path, "convert 'FILE[0]' FILE.png"), path + ": convert '" + path + "[0]' " + word + ".png");
  EXPECT_EQ(bad_file_text("a.tar: b.heic", "convert FILE FILE.png"), "a.tar: b.heic: convert FILE FILE.png");
}

TEST(DecodeTest, EveryCutThroughAJpegIsFound) {
  const Bytes whole = jpeg_of(pattern_pixels(33, 29, 3), 33, 29);
  ASSERT_EQ(decoded(whole, 3).reason, "");
  constexpr size_t kEndMarker = 2;  // whose bytes may be missing, where all pixels are there
  for (size_t size = 0; size + kEndMarker < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<int64_t>(size));
    EXPECT_NE(decoded(cut, 3).reason, "") << size << " of " << whole.size();
  }
}

TEST(DecodeTest, EveryCutThroughALosslessFileIsFound) {
  const Bytes rgb = pattern_pixels(9, 8, 3);
  for (const Bytes& whole : {png_of(rgb, 9, 8, 3), bmp_of(rgb, 9, 8, 3), webp_of(rgb, 9, 8, 3)}) {
    // Some writers leave out the padding of the last row of a BMP, or the end mark of a PNG.
    const size_t padding = whole[0] == 'B' ? 1 : whole[0] == 0x89 ? 12 : 0;
    for (size_t size = 0; size + padding < whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<int64_t>(size));
      EXPECT_NE(decoded(cut, 3).reason, "") << size << " of " << whole.size() << ", first byte " << int{whole[0]};
    }
  }
}

TEST(DecodeTest, AChangedByteInAPngIsFoundByItsChecksum) {
  const Bytes whole = png_of(pattern_pixels(9, 8, 3), 9, 8, 3);
  Bytes damaged = whole;
  damaged[whole.size() / 2] ^= 1;
  EXPECT_NE(decoded(damaged, 3).reason.find("damaged: its checksum does not match"), std::string::npos);
}

TEST(DecodeTest, DamagedBytesNeverCrash) {
  // Every file with one byte changed either decodes to its size or has a reason.
  const Bytes rgb = pattern_pixels(17, 11, 3);
  for (const Bytes& whole :
       {jpeg_of(rgb, 17, 11), jpeg_of(rgb, 17, 11, {3, true}), bmp_of(rgb, 17, 11, 3), webp_of(rgb, 17, 11, 3)}) {
    DecodeLimits limits;
    limits.max_megapixels = 1;
    for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 400) {
      Bytes damaged = whole;
      damaged[at] ^= 0x55;
      const Decoded image = decoded(damaged, 3, limits);
      if (image.reason.empty()) {
        EXPECT_EQ(image.pixels.size(), static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * 3);
      }
    }
  }
}

TEST(DecodeTest, BombsAreRefusedByTheirHeader) {
  Bytes png = png_of(pattern_pixels(4, 4, 3), 4, 4, 3);
  png[16] = 0;
  png[17] = 0;
  png[18] = 0x80;  // 32768 wide
  png[22] = 0x80;  // and high
  EXPECT_EQ(decoded(png, 3).reason,
            "its header gives 32772x32772 = 1074.0 megapixels, more than --max-image-megapixels 64");
  DecodeLimits narrow;
  narrow.max_side = 3;
  EXPECT_EQ(decoded(png_of(pattern_pixels(4, 4, 3), 4, 4, 3), 3, narrow).reason,
            "its header gives 4x4 pixels; a side may have 3 at most");
}

TEST(DecodeTest, AProgressiveJpegOfManyScansIsRefused) {
  const Bytes file = jpeg_of(pattern_pixels(64, 64, 3), 64, 64, {3, /*progressive=*/true});
  DecodeLimits limits;
  limits.max_jpeg_scans = 3;
  EXPECT_EQ(decoded(file, 3, limits).reason, "JPEG: more than 3 scans");
  EXPECT_EQ(decoded(file, 3).reason, "");
}

TEST(DecodeTest, DamageInsideAJpegIsFoundAndRepairedOnRequest) {
  const Bytes whole = jpeg_of(pattern_pixels(33, 29, 3), 33, 29);
  Bytes cut(whole.begin(), whole.end() - static_cast<int64_t>(whole.size() / 4));
  const std::string cut_short = "JPEG: cut short: there is no end marker";
  EXPECT_EQ(decoded(cut, 3).reason, cut_short);
  DecodeLimits limits;
  limits.repair = true;
  EXPECT_EQ(decoded(cut, 3, limits).reason, "");
  EXPECT_EQ(take_repair(), cut_short);
  EXPECT_EQ(take_repair(), "");
  EXPECT_EQ(decoded(whole, 3, limits).pixels, decoded(whole, 3).pixels);
  EXPECT_EQ(take_repair(), "") << "a whole file needs no repair";
}

TEST(DecodeTest, NumbersOfARangeBecomeEightBits) {
  const Bytes file = png16_of({900, 1000, 1100, 1300, 0, 65535}, 6, 1, 1);
  DecodeLimits limits;
  EXPECT_EQ(decoded(file, 1).pixels, Bytes({4, 4, 4, 5, 0, 255}));
  limits.range = {900, 1300};
  EXPECT_EQ(decoded(file, 1, limits).pixels, Bytes({0, 64, 128, 255, 0, 255}));
  SeenValues seen;
  limits.seen = &seen;
  decoded(file, 1, limits);
  EXPECT_EQ(seen.values, (std::vector<double>{900, 1000, 1100, 1300, 0, 65535}));
  EXPECT_EQ(seen.high, 65535);
}

}  // namespace
}  // namespace stoker::data
