// SPDX-License-Identifier: Apache-2.0
// Compiled without fused multiply-add (see CMakeLists.txt): the same bits on every machine.
#include "data/transform/augment_colour.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "data/image/pixels/convert.h"
#include "kernels/widest.h"

namespace stoker::data {
namespace {

using ByteTable = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

/// Pillow's Image.blend: single precision, cut off to a byte, rounded down.
inline __attribute__((always_inline)) uint8_t blended(float degenerate, float original, float factor) {
  const float mixed = degenerate + factor * (original - degenerate);
  return static_cast<uint8_t>(static_cast<int>(std::min(std::max(mixed, 0.0F), 255.0F)));
}

inline __attribute__((always_inline)) void blend_bytes_body(const uint8_t* degenerate, uint8_t* original, int64_t bytes,
                                                            float factor) {
  for (int64_t i = 0; i < bytes; ++i) original[i] = blended(degenerate[i], original[i], factor);
}

inline __attribute__((always_inline)) void saturate_body(uint8_t* pixels, int64_t area, float factor) {
  for (int64_t i = 0; i < area; ++i) {
    uint8_t* const pixel = pixels + 3 * i;
    const float gray = luma(pixel[0], pixel[1], pixel[2]);
    for (int c = 0; c < 3; ++c) pixel[c] = blended(gray, pixel[c], factor);
  }
}

void look_up(const SquareImage& image, const ByteTable& table) {
  uint8_t* const pixels = image.pixels;  // by value: bytes may alias the struct
  const int64_t bytes = image.bytes();
  for (int64_t i = 0; i < bytes; ++i) pixels[i] = table[pixels[i]];
}

void look_up_channel(const SquareImage& image, int channel, const ByteTable& table) {
  for (int64_t i = channel; i < image.bytes(); i += image.channels) image.pixels[i] = table[image.pixels[i]];
}

ByteTable blend_table(double degenerate, double factor) {
  ByteTable table;
  for (size_t v = 0; v < 256; ++v) {
    table[v] = blended(static_cast<float>(degenerate), static_cast<float>(v), static_cast<float>(factor));
  }
  return table;
}

int64_t luma_sum(const SquareImage& image) {
  int64_t sum = 0;
  const uint8_t* const p = image.pixels;
  for (int64_t i = 0; i < image.area(); ++i) {
    sum += image.channels == 1 ? p[i] : luma(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
  }
  return sum;
}

Histogram channel_histogram(const SquareImage& image, int channel) {
  Histogram counts{};
  for (int64_t i = channel; i < image.bytes(); i += image.channels) ++counts[image.pixels[i]];
  return counts;
}

}  // namespace

void blend_bytes(const uint8_t* degenerate, uint8_t* original, int64_t bytes, double factor) {
  const auto by = static_cast<float>(factor);
  kernels::call_at_widest([=]() STOKER_INLINED { blend_bytes_body(degenerate, original, bytes, by); });
}

void adjust_brightness(const SquareImage& image, double factor) { look_up(image, blend_table(0, factor)); }

void adjust_contrast(const SquareImage& image, double factor) {
  const int64_t mean = (2 * luma_sum(image) + image.area()) / (2 * image.area());  // halves up
  look_up(image, blend_table(static_cast<double>(mean), factor));
}

void adjust_saturation(const SquareImage& image, double factor) {
  if (image.channels == 1) return;
  uint8_t* const pixels = image.pixels;
  const int64_t area = image.area();
  const auto by = static_cast<float>(factor);
  kernels::call_at_widest([=]() STOKER_INLINED { saturate_body(pixels, area, by); });
}

void to_grayscale(const SquareImage& image) {
  if (image.channels == 1) return;
  for (int64_t i = 0; i < image.area(); ++i) {
    uint8_t* const pixel = image.pixels + 3 * i;
    const uint8_t gray = luma(pixel[0], pixel[1], pixel[2]);
    for (int c = 0; c < 3; ++c) pixel[c] = gray;
  }
}

void posterize(const SquareImage& image, int bits) {
  const auto mask = static_cast<uint8_t>(0xFF << (8 - bits));
  uint8_t* const pixels = image.pixels;
  const int64_t bytes = image.bytes();
  for (int64_t i = 0; i < bytes; ++i) pixels[i] &= mask;
}

void solarize(const SquareImage& image, double threshold) {
  ByteTable table;
  for (size_t v = 0; v < 256; ++v) {
    table[v] = static_cast<uint8_t>(static_cast<double>(v) < threshold ? v : 255 - v);
  }
  look_up(image, table);
}

void stretch_contrast(const SquareImage& image) {
  for (int channel = 0; channel < image.channels; ++channel) {
    const Histogram counts = channel_histogram(image, channel);
    int low = 0, high = 255;
    while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
    while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
    if (high <= low) continue;
    const double scale = 255.0 / (high - low), offset = -low * scale;
    ByteTable table;
    for (int v = 0; v < 256; ++v) {
      table[static_cast<size_t>(v)] = static_cast<uint8_t>(std::clamp(static_cast<int>(v * scale + offset), 0, 255));
    }
    look_up_channel(image, channel, table);
  }
}

void equalize_histogram(const SquareImage& image) {
  for (int channel = 0; channel < image.channels; ++channel) {
    const Histogram counts = channel_histogram(image, channel);
    int last = 255;
    while (last > 0 && counts[static_cast<size_t>(last)] == 0) --last;
    // The last value that occurs is left out, so that it becomes 255.
    const int64_t step = (image.area() - counts[static_cast<size_t>(last)]) / 255;
    if (step == 0) continue;  // also when there is one value only
    ByteTable table;
    int64_t below = step / 2;
    for (size_t v = 0; v < 256; ++v) {
      table[v] = static_cast<uint8_t>(std::min<int64_t>(255, below / step));
      below += counts[v];
    }
    look_up_channel(image, channel, table);
  }
}

}  // namespace stoker::data
