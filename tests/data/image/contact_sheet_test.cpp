// SPDX-License-Identifier: Apache-2.0
#include "data/image/contact_sheet.h"

#include <gtest/gtest.h>

#include <opencv2/imgcodecs.hpp>

namespace stoker::data {
namespace {

cv::Mat decoded(const ContactSheet& sheet) {
  const std::string png = sheet.png();
  return cv::imdecode(cv::Mat(1, static_cast<int>(png.size()), CV_8UC1, const_cast<char*>(png.data())),
                      cv::IMREAD_COLOR);
}

int count_of_colour(const cv::Mat& image, const cv::Vec3b& bgr) {
  int count = 0;
  for (int y = 0; y < image.rows; ++y) {
    for (int x = 0; x < image.cols; ++x) count += image.at<cv::Vec3b>(y, x) == bgr;
  }
  return count;
}

SheetTile tile_of(int64_t pixels, const std::vector<uint8_t>& colour, const std::string& caption) {
  SheetTile tile;
  tile.caption = caption;
  for (int64_t i = 0; i < pixels; ++i) tile.pixels.insert(tile.pixels.end(), colour.begin(), colour.end());
  return tile;
}

TEST(ContactSheetTest, ShowsEveryPixelOfEveryTileInItsColour) {
  ContactSheet sheet(/*height=*/32, /*width=*/32, /*channels=*/3, /*columns=*/2);
  sheet.add_heading("reds and a green");
  sheet.add_tile(tile_of(32 * 32, {250, 0, 0}, "cat"));
  sheet.add_tile(tile_of(32 * 32, {0, 250, 0}, "a caption that is much too long for a tile of this size"));
  sheet.add_tile(tile_of(32 * 32, {250, 0, 0}, "\xc3\xa9t\xc3\xa9"));
  const cv::Mat image = decoded(sheet);
  EXPECT_EQ(image.cols, sheet.width());
  EXPECT_EQ(image.rows, sheet.height());
  EXPECT_EQ(count_of_colour(image, {0, 0, 250}), 2 * 96 * 96) << "each pixel of 32 x 32 is shown as 3 x 3";
  EXPECT_EQ(count_of_colour(image, {0, 250, 0}), 96 * 96);
}

TEST(ContactSheetTest, GrayImagesStayGrayAndLargeOnesKeepTheirSize) {
  ContactSheet sheet(/*height=*/100, /*width=*/100, /*channels=*/1, /*columns=*/1);
  sheet.add_tile(tile_of(100 * 100, {77}, ""));
  sheet.add_tile(tile_of(100 * 100, {78}, ""));
  const cv::Mat image = decoded(sheet);
  EXPECT_EQ(count_of_colour(image, {77, 77, 77}), 100 * 100);
  EXPECT_EQ(count_of_colour(image, {78, 78, 78}), 100 * 100);
}

}  // namespace
}  // namespace stoker::data
