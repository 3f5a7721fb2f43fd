// SPDX-License-Identifier: Apache-2.0
#include "data/image/contact_sheet.h"

#include <opencv2/core.hpp>
#include <opencv2/core/utility.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include <algorithm>
#include <new>
#include <string>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {
namespace {

// Pixels.
constexpr int kGap = 6, kCaption = 18, kHeading = 34;
constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
constexpr double kCaptionSize = 0.4, kHeadingSize = 0.55;

const cv::Scalar kPaper(255, 255, 255), kInk(40, 30, 25);

/// OpenCV's fonts have ASCII alone.
std::string ascii(const std::string& text) {
  std::string plain;
  for (const char c : core::printable(text)) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) plain += c >= ' ' && c <= '~' ? c : '?';
  }
  return plain;
}

std::string cut_to_width(std::string text, double size, int64_t width) {
  int baseline = 0;
  while (!text.empty() && cv::getTextSize(text, kFont, size, 1, &baseline).width > width) text.pop_back();
  return text;
}

void write_text(cv::Mat& canvas, const std::string& text, int64_t x, int64_t y, double size, int64_t width) {
  cv::putText(canvas, cut_to_width(ascii(text), size, width), {static_cast<int>(x), static_cast<int>(y)}, kFont, size,
              kInk, 1, cv::LINE_AA);
}

}  // namespace

ContactSheet::ContactSheet(int64_t height, int64_t width, int64_t channels, int64_t columns)
    : height_(height),
      width_(width),
      channels_(channels),
      columns_(columns),
      factor_(std::max<int64_t>(1, (kLeastTile + std::max(height, width) - 1) / std::max(height, width))) {}

void ContactSheet::add_heading(const std::string& text) { rows_.push_back({text, {}}); }

void ContactSheet::add_tile(SheetTile tile) {
  const bool fits =
      !rows_.empty() && rows_.back().heading.empty() && static_cast<int64_t>(rows_.back().tiles.size()) < columns_;
  if (!fits) rows_.emplace_back();
  rows_.back().tiles.push_back(std::move(tile));
}

int64_t ContactSheet::width() const { return kGap + columns_ * (tile_width() + kGap); }

int64_t ContactSheet::row_pixels(const Row& row) const {
  return row.heading.empty() ? tile_height() + kCaption + kGap : kHeading;
}

int64_t ContactSheet::height() const {
  int64_t pixels = kGap;
  for (const Row& row : rows_) pixels += row_pixels(row);
  return pixels;
}

std::string ContactSheet::png() const {
  cv::Mat canvas(static_cast<int>(height()), static_cast<int>(width()), CV_8UC3, kPaper);  // BGR
  int64_t y = kGap;
  for (const Row& row : rows_) {
    if (!row.heading.empty())
      write_text(canvas, row.heading, kGap, y + kHeading - 12, kHeadingSize, width() - 2 * kGap);
    int64_t x = kGap;
    for (const SheetTile& tile : row.tiles) {
      const cv::Mat image(static_cast<int>(height_), static_cast<int>(width_), channels_ == 3 ? CV_8UC3 : CV_8UC1,
                          const_cast<uint8_t*>(tile.pixels.data()));  // read only
      cv::Mat colour, large;
      cv::cvtColor(image, colour, channels_ == 3 ? cv::COLOR_RGB2BGR : cv::COLOR_GRAY2BGR);
      const int high = static_cast<int>(tile_height()), wide = static_cast<int>(width_ * factor_);
      cv::resize(colour, large, {wide, high}, 0, 0, cv::INTER_NEAREST);
      large.copyTo(canvas(cv::Rect(static_cast<int>(x), static_cast<int>(y), wide, high)));
      write_text(canvas, tile.caption, x, y + high + kCaption - 5, kCaptionSize, tile_width());
      x += tile_width() + kGap;
    }
    y += row_pixels(row);
  }
  std::vector<uint8_t> bytes;
  if (!cv::imencode(".png", canvas, bytes))
    throw core::Error(core::ErrorKind::bug, "a contact sheet could not be encoded");
  return {bytes.begin(), bytes.end()};
}

void encode_png(const uint8_t* pixels, int width, int height, int channels, std::vector<uint8_t>& out) {
  try {
    const cv::Mat given(height, width, CV_8UC(channels), const_cast<uint8_t*>(pixels));
    cv::Mat image;
    if (channels == 1) {
      image = given;
    } else {  // OpenCV's order of colours is BGR
      image.create(height, width, CV_8UC3);
      const int from_to[] = {0, 2, 1, 1, 2, 0};
      cv::mixChannels(&given, 1, &image, 1, from_to, 3);
    }
    if (!cv::imencode(".png", image, out)) throw core::Error(core::ErrorKind::bug, "cannot write a PNG");
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) throw std::bad_alloc();
    throw core::Error(core::ErrorKind::bug, std::string("cannot write a PNG: ") + error.what());
  }
}

std::string image_library_text() { return "OpenCV " + cv::getVersionString(); }

}  // namespace stoker::data
