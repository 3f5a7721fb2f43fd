// SPDX-License-Identifier: Apache-2.0
// TIFF files: which are read, what their pixels mean, the errors of the others.
#include <gtest/gtest.h>

#include <opencv2/imgcodecs.hpp>

#include <algorithm>

#include "data/image/decode.h"
#include "made_data.h"

namespace stoker::data {
namespace {

/// A file as OpenCV writes it; `pixels` are in its order, BGR.
Bytes tiff_of(const cv::Mat& pixels) {
  Bytes file;
  cv::imencode(".tif", pixels, file);
  return file;
}

Bytes decoded(const Bytes& file, int channels) {
  ImageBuffer image;
  EXPECT_EQ(decode_image(file.data(), file.size(), channels, DecodeLimits(), image), "");
  const auto count =
      static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * static_cast<size_t>(channels);
  return Bytes(image.pixels.data(), image.pixels.data() + count);
}

std::string problem(const Bytes& file) {
  ImageBuffer image;
  return decode_image(file.data(), file.size(), 3, DecodeLimits(), image);
}

TEST(TiffTest, ColoursOfEightBitsAreWhatWasStored) {
  const Bytes rgb = pattern_pixels(13, 7, 3);
  cv::Mat stored(7, 13, CV_8UC3);
  for (int i = 0; i < 13 * 7; ++i) {
    for (int c = 0; c < 3; ++c) stored.data[3 * i + c] = rgb[static_cast<size_t>(3 * i + 2 - c)];
  }
  EXPECT_EQ(decoded(tiff_of(stored), 3), rgb);
  ImageHeader header;
  const Bytes file = tiff_of(stored);
  ASSERT_EQ(read_header(file.data(), file.size(), DecodeLimits(), header), "");
  EXPECT_EQ(header.format, ImageFormat::tiff);
  EXPECT_EQ(header.width, 13);
  EXPECT_EQ(header.height, 7);
  EXPECT_EQ(header.channels, 3);
}

TEST(TiffTest, SixteenBitsBecomeEightRounded) {
  cv::Mat gray(1, 4, CV_16UC1);
  const uint16_t values[] = {0, 128, 129, 65535};
  std::copy(std::begin(values), std::end(values), gray.ptr<uint16_t>());
  EXPECT_EQ(decoded(tiff_of(gray), 1), (Bytes{0, 0, 1, 255}));
  EXPECT_EQ(decoded(tiff_of(gray), 3), (Bytes{0, 0, 0, 0, 0, 0, 1, 1, 1, 255, 255, 255}));
}

TEST(TiffTest, OtherKindsAreRefusedWithTheirReason) {
  EXPECT_EQ(
      problem(tiff_of(cv::Mat(3, 3, CV_32FC1, cv::Scalar(7.5)))),
      "TIFF of floats from 0 to 7.5, not from 0 to 1; give the numbers of black and white: --input-range LOW,HIGH");
  Bytes many = tiff_of(cv::Mat(3, 3, CV_8UC3, cv::Scalar(1, 2, 3)));
  const Bytes samples_per_pixel = {0x15, 0x01, 3, 0, 1, 0, 0, 0, 3};  // tag 277, a short: 3
  const auto tag = std::search(many.begin(), many.end(), samples_per_pixel.begin(), samples_per_pixel.end());
  ASSERT_NE(tag, many.end());
  tag[8] = 6;
  EXPECT_NE(problem(many), "");
}

TEST(TiffTest, FloatsAsOpenCvWritesThemAreConvertedByOpenCv) {
  const Bytes file = tiff_of(cv::Mat(3, 3, CV_32FC3, cv::Scalar(0.5, 0.25, 1)));  // LogLuv
  EXPECT_NE(problem(file).find("IMWRITE_TIFF_COMPRESSION"), std::string::npos) << problem(file);
}

TEST(TiffTest, CutFilesAreBadAndNeverMore) {
  const Bytes whole = tiff_of(cv::Mat(40, 30, CV_8UC3, cv::Scalar(10, 200, 30)));
  for (size_t length = 1; length < whole.size(); length += 1 + length / 9) {
    EXPECT_NE(problem(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))), "") << length;
  }
}

}  // namespace
}  // namespace stoker::data
