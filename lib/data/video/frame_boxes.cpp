// SPDX-License-Identifier: Apache-2.0
#include "data/video/frame_boxes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/text/csv.h"

namespace stoker::data {
namespace {

constexpr std::array kBoxColumns = {"path", "frame", "x", "y", "width", "height"};
enum BoxColumn : size_t { kBoxPath, kBoxFrame, kBoxX, kBoxY, kBoxWidth, kBoxHeight };
using BoxPlaces = std::array<size_t, kBoxColumns.size()>;

/// Where each column stands.
BoxPlaces box_places_in(const core::CsvReader& file, std::vector<std::string> header) {
  for (std::string& name : header) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  }
  BoxPlaces places{};
  for (size_t i = 0; i < kBoxColumns.size(); ++i) {
    places[i] = static_cast<size_t>(std::find(header.begin(), header.end(), kBoxColumns[i]) - header.begin());
    if (places[i] == header.size()) {
      file.fail(core::format("the header has no column {}", kBoxColumns[i]),
                "the first line names the columns: path,frame,x,y,width,height");
    }
  }
  return places;
}

double box_number_in(const core::CsvReader& file, const std::string& text, const char* column, double lowest) {
  constexpr double kHighest = 1e7;  // above any side and any video
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || !(number >= lowest && number <= kHighest)) {
    file.fail(core::format("{} is '{}', not a number of {} to {}", column, core::printable(text), lowest, kHighest));
  }
  return number;
}

std::string absolute_video(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).lexically_normal().string();
}

}  // namespace

FrameBoxes::FrameBoxes(const std::string& path) : path_(path) {
  core::CsvReader file(path, core::CsvReader::kUsualRowBytes, 0);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<std::string> fields;
  if (!file.next_row(fields)) file.fail("is empty", "the first line names the columns: path,frame,x,y,width,height");
  const BoxPlaces places = box_places_in(file, fields);
  const size_t columns = fields.size();
  core::Hasher hasher;
  while (file.next_row(fields)) {
    if (fields.size() != columns) file.fail(core::format("{} fields, the header has {}", fields.size(), columns));
    const auto number = [&](BoxColumn column, double lowest) {
      return box_number_in(file, fields[places[column]], kBoxColumns[column], lowest);
    };
    const double frame = number(kBoxFrame, 0), x = number(kBoxX, -1e6), y = number(kBoxY, -1e6);
    const double width = number(kBoxWidth, 1), height = number(kBoxHeight, 1);
    if (frame != std::floor(frame)) file.fail(core::format("frame is {}, no whole number", frame));
    const auto edge = [](double at) { return static_cast<int32_t>(std::lround(at)); };
    const FrameBox box = {static_cast<int64_t>(frame), edge(x), edge(y), edge(x + width), edge(y + height)};
    const std::string& video = fields[places[kBoxPath]];
    hasher.add(core::format("{} {} {} {} {} {}\n", video, box.frame, box.left, box.top, box.right, box.bottom));
    boxes_[absolute_video(folder / video)].push_back(box);
  }
  const auto comes_before = [](const FrameBox& a, const FrameBox& b) { return a.frame < b.frame; };
  for (auto& [video, boxes] : boxes_) {
    std::sort(boxes.begin(), boxes.end(), comes_before);
    const auto twice = std::adjacent_find(boxes.begin(), boxes.end(),
                                          [&](const FrameBox& a, const FrameBox& b) { return !comes_before(a, b); });
    if (twice != boxes.end()) {
      throw core::Error(core::ErrorKind::data,
                        core::format("{} has two boxes of frame {} of {}", core::printable(path), twice->frame,
                                     core::printable(video)),
                        "leave the one to be seen: a frame has one box");
    }
    boxes.shrink_to_fit();
    bytes_ += static_cast<int64_t>(video.size() + boxes.size() * sizeof(FrameBox) + 100);
  }
  digest_ = hasher.hex();
}

const std::vector<FrameBox>* FrameBoxes::of(const std::string& video) const {
  const auto found = boxes_.find(absolute_video(video));
  return found == boxes_.end() ? nullptr : &found->second;
}

const FrameBox& nearest_box(const std::vector<FrameBox>& boxes, int64_t frame) {
  const auto later = std::lower_bound(boxes.begin(), boxes.end(), frame,
                                      [](const FrameBox& box, int64_t wanted) { return box.frame < wanted; });
  if (later == boxes.end()) return boxes.back();
  if (later == boxes.begin()) return *later;
  const auto earlier = later - 1;
  return frame - earlier->frame <= later->frame - frame ? *earlier : *later;
}

std::string crop_to_box(const FrameBox& box, std::vector<uint8_t>& rgb, int& height, int& width) {
  const int left = std::max(0, box.left), top = std::max(0, box.top);
  const int right = std::min(width, box.right), bottom = std::min(height, box.bottom);
  if (left >= right || top >= bottom) {
    return core::format("the box of frame {}, {} to {} by {} to {}, lies outside of its {} x {} pixels", box.frame,
                        box.left, box.right, box.top, box.bottom, width, height);
  }
  const auto row_bytes = static_cast<size_t>(right - left) * 3;
  for (int y = top; y < bottom; ++y) {
    const size_t from = (static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(left)) * 3;
    std::memmove(rgb.data() + static_cast<size_t>(y - top) * row_bytes, rgb.data() + from, row_bytes);
  }
  height = bottom - top;
  width = right - left;
  return "";
}

}  // namespace stoker::data
