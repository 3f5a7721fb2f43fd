// SPDX-License-Identifier: Apache-2.0
// What one row of a batch consists of: how many numbers of which kind. Without LibTorch.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker::data {

/// What one number of a sample is.
enum class Element : uint8_t { uint8, float16, float32 };

constexpr int64_t bytes_of(Element element) {
  return element == Element::uint8 ? 1 : element == Element::float16 ? 2 : 4;
}

constexpr const char* element_name(Element element) {
  return element == Element::uint8 ? "uint8" : element == Element::float16 ? "float16" : "float32";
}

/// An image [height, width, channels] or a clip of such images [frames, height, width, channels], without
/// gaps. With two views, each frame in high and in low quality: [2, frames, height, width, channels].
struct SampleShape {
  int64_t frames = 0;             ///< of a clip; 0: a single image
  int64_t height = 0, width = 0;  ///< pixels
  int64_t channels = 0;
  Element element = Element::uint8;
  int64_t views = 1;  ///< 1 or 2

  /// Images in a row: the frames of a clip, else 1; of each view.
  int64_t images() const { return std::max<int64_t>(1, frames) * views; }
  int64_t image_bytes() const { return height * width * channels * bytes_of(element); }
  int64_t bytes() const { return images() * image_bytes(); }
  bool is_possible() const { return frames >= 0 && height > 0 && width > 0 && channels > 0; }
  /// Whether rows can have this shape where a source fixes `fixed`: all of it, or without a height the
  /// frames.
  bool agrees_with(const SampleShape& fixed) const {
    if (fixed.height > 0) return *this == fixed;
    return frames == fixed.frames && views == fixed.views && element == Element::uint8;
  }

  bool operator==(const SampleShape& other) const {
    return frames == other.frames && height == other.height && width == other.width && channels == other.channels &&
           element == other.element && views == other.views;
  }
  bool operator!=(const SampleShape& other) const { return !(*this == other); }
};

/// A square image of bytes.
constexpr SampleShape square_shape(int64_t side, int64_t channels) {
  return {0, side, side, channels, Element::uint8, 1};
}

}  // namespace stoker::data
