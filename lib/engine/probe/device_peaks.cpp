// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/device_peaks.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <vector>

namespace stoker::engine {
namespace {

constexpr double kSameSlope = 0.1, kOfImages = 0.5;

struct Point {
  int64_t images = 0, bytes = 0;
};

double slope(const Point& a, const Point& b) {
  return static_cast<double>(b.bytes - a.bytes) / static_cast<double>(b.images - a.images);
}

bool is_settled(const std::vector<Point>& points) {
  if (points.size() < 3) return false;
  const Point& last = points.back();
  const double before = slope(points.end()[-3], points.end()[-2]), now = slope(points.end()[-2], last);
  const double of_images = now * static_cast<double>(last.images);
  return std::abs(now - before) <= kSameSlope * std::abs(now) &&
         of_images >= kOfImages * static_cast<double>(last.bytes);
}

}  // namespace

PeakLine peak_line(const std::function<int64_t(int64_t images)>& peak_of, int64_t first, int64_t most,
                   const std::function<bool(const std::exception&)>& is_too_much) {
  std::vector<Point> points;
  const auto try_number = [&](int64_t images) {
    peak_of(images);
    points.push_back({images, peak_of(images)});
  };
  try_number(first);
  for (int64_t images = 2 * first; images <= most && !is_settled(points); images *= 2) {
    try {
      try_number(images);
    } catch (const std::exception& error) {
      if (!is_too_much(error)) throw;
      break;
    }
  }
  if (points.size() == 1) {
    try_number(std::max<int64_t>(1, first / 2));
    std::swap(points[0], points[1]);
  }
  const Point &small = points.end()[-2], &large = points.back();
  return {{small.images, {small.bytes}}, {large.images, {large.bytes}}, is_settled(points)};
}

}  // namespace stoker::engine
