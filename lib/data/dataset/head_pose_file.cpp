// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/head_pose_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "data/container/mat_file.h"

namespace stoker::data {
namespace {

constexpr double kDegreesPerRadian = 180 / 3.14159265358979323846;
constexpr double kHeadMillimetres = 200;

/// Numbers between blanks; false when something else stands there.
bool read_numbers(std::string_view text, std::vector<double>& numbers) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (true) {
    while (at != end && is_blank(*at)) ++at;
    if (at == end) return true;
    double number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc() || !std::isfinite(number) || (after != end && !is_blank(*after))) return false;
    numbers.push_back(number);
    at = after;
  }
}

/// Numbers as large as no picture end in a box that cannot be cut out: then there is none.
RegionOfInterest finite_or_empty(const RegionOfInterest& box) {
  for (const double value : {box.left, box.top, box.left + box.width, box.top + box.height}) {
    if (!std::isfinite(value)) return {};
  }
  return box;
}

/// The box of all landmarks that are known, widened.
RegionOfInterest landmark_box(const MatArray& landmarks, double margin) {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool any = false;
  for (int64_t i = 0; i < landmarks.columns; ++i) {
    const double x = landmarks.values[static_cast<size_t>(2 * i)], y = landmarks.values[static_cast<size_t>(2 * i + 1)];
    if (!std::isfinite(x) || !std::isfinite(y) || (x == -1 && y == -1)) continue;
    left = any ? std::min(left, x) : x;
    right = any ? std::max(right, x) : x;
    top = any ? std::min(top, y) : y;
    bottom = any ? std::max(bottom, y) : y;
    any = true;
  }
  const double width = right - left, height = bottom - top;
  if (width <= 0 || height <= 0) return {};
  return finite_or_empty(
      {left - margin * width, top - margin * height, (1 + 2 * margin) * width, (1 + 2 * margin) * height});
}

}  // namespace

std::string parse_biwi_pose(std::string_view text, HeadPose& pose) {
  std::vector<double> numbers;
  if (!read_numbers(text, numbers)) return "holds something else than numbers";
  if (numbers.size() != 12) return "has not the 12 numbers of a rotation and a place";
  const auto transposed = [&](size_t row, size_t column) { return numbers[3 * column + row]; };
  for (size_t row = 0; row < 3; ++row) {
    double length = 0;
    for (size_t column = 0; column < 3; ++column) length += transposed(row, column) * transposed(row, column);
    if (std::abs(length - 1) > 0.01) return "does not begin with a rotation matrix";
  }
  const double roll = -std::atan2(transposed(1, 0), transposed(0, 0));
  const double yaw = -std::atan2(-transposed(2, 0), std::hypot(transposed(2, 1), transposed(2, 2)));
  const double pitch = std::atan2(transposed(2, 1), transposed(2, 2));
  const auto degrees = [](double radians) { return static_cast<float>(radians * kDegreesPerRadian); };
  pose = {{degrees(yaw), degrees(pitch), degrees(roll)}, {numbers[9], numbers[10], numbers[11]}, {}};
  return "";
}

std::string parse_biwi_camera(std::string_view text, ColourCamera& camera) {
  std::vector<std::vector<double>> lines;  // those that are not blank
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::vector<double> numbers;
    if (!read_numbers(text.substr(0, end), numbers)) return "holds something else than numbers";
    if (!numbers.empty()) lines.push_back(std::move(numbers));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  constexpr size_t kRotation = 4, kTranslation = 7;  // the lines where they begin
  if (lines.size() <= kTranslation) return "has not the lines of intrinsics, distortion, rotation and translation";
  for (const size_t line : {0, 1, 2, 4, 5, 6, 7}) {
    if (lines[line].size() != 3) return "has not 3 numbers in a line of a matrix";
  }
  if (lines[0][0] <= 0 || lines[1][1] <= 0) return "has a focal length that is not above 0";
  camera.focal_x = lines[0][0];
  camera.centre_x = lines[0][2];
  camera.focal_y = lines[1][1];
  camera.centre_y = lines[1][2];
  for (size_t i = 0; i < 9; ++i) camera.rotation[i] = lines[kRotation + i / 3][i % 3];
  for (size_t i = 0; i < 3; ++i) camera.translation[i] = lines[kTranslation][i];
  return "";
}

RegionOfInterest biwi_head_box(const std::array<double, 3>& place, const ColourCamera& camera, double margin) {
  std::array<double, 3> seen = camera.translation;  // millimetres before the colour camera
  for (size_t i = 0; i < 9; ++i) seen[i / 3] += camera.rotation[i] * place[i % 3];
  if (seen[2] <= 0) return {};
  const double millimetres = kHeadMillimetres * (1 + 2 * margin);
  const double width = camera.focal_x * millimetres / seen[2], height = camera.focal_y * millimetres / seen[2];
  return finite_or_empty({camera.focal_x * seen[0] / seen[2] + camera.centre_x - width / 2,
                          camera.focal_y * seen[1] / seen[2] + camera.centre_y - height / 2, width, height});
}

std::string read_300w_pose(const std::string& path, double margin, HeadPose& pose) {
  MatFile file;
  MatArray angles, landmarks;
  if (std::string problem = file.open(path); !problem.empty()) return problem;
  if (std::string problem = file.read_array("Pose_Para", angles); !problem.empty()) return problem;
  if (angles.values.size() < 3) return "Pose_Para has fewer than 3 numbers";
  for (size_t i = 0; i < 3; ++i) {
    if (!std::isfinite(angles.values[i])) return "Pose_Para is not finite";
  }
  const auto degrees = [&](size_t i) { return static_cast<float>(angles.values[i] * kDegreesPerRadian); };
  pose = {{degrees(1), degrees(0), degrees(2)}, {}, {}};
  const bool has_landmarks = file.read_array("pt2d", landmarks).empty() && landmarks.rows == 2;
  if (has_landmarks) pose.face = landmark_box(landmarks, margin);
  return "";
}

}  // namespace stoker::data
