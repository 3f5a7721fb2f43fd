// SPDX-License-Identifier: Apache-2.0
// Compiled without fused multiply-add (see CMakeLists.txt): the same bits on every machine.
#include "data/transform/augment_colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "data/image/pixels/image_buffer.h"
#include "kernels/cpu.h"

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

void look_up(const PixelImage& image, const ByteTable& table) {
  uint8_t* const pixels = image.pixels;  // by value: bytes may alias the struct
  const int64_t bytes = image.bytes();
  for (int64_t i = 0; i < bytes; ++i) pixels[i] = table[pixels[i]];
}

void look_up_channel(const PixelImage& image, int channel, const ByteTable& table) {
  for (int64_t i = channel; i < image.bytes(); i += image.channels) image.pixels[i] = table[image.pixels[i]];
}

ByteTable blend_table(double degenerate, double factor) {
  ByteTable table;
  for (size_t v = 0; v < 256; ++v) {
    table[v] = blended(static_cast<float>(degenerate), static_cast<float>(v), static_cast<float>(factor));
  }
  return table;
}

int64_t luma_sum(const PixelImage& image) {
  int64_t sum = 0;
  const uint8_t* const p = image.pixels;
  for (int64_t i = 0; i < image.area(); ++i) {
    sum += image.channels == 1 ? p[i] : luma(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
  }
  return sum;
}

Histogram channel_histogram(const PixelImage& image, int channel) {
  Histogram counts{};
  for (int64_t i = channel; i < image.bytes(); i += image.channels) ++counts[image.pixels[i]];
  return counts;
}

}  // namespace

void blend_bytes(const uint8_t* degenerate, uint8_t* original, int64_t bytes, double factor) {
  const auto by = static_cast<float>(factor);
  kernels::call_at_widest([=]() STOKER_INLINED { blend_bytes_body(degenerate, original, bytes, by); });
}

void adjust_brightness(const PixelImage& image, double factor) { look_up(image, blend_table(0, factor)); }

void adjust_contrast(const PixelImage& image, double factor) {
  const int64_t mean = (2 * luma_sum(image) + image.area()) / (2 * image.area());  // halves up
  look_up(image, blend_table(static_cast<double>(mean), factor));
}

void adjust_saturation(const PixelImage& image, double factor) {
  if (image.channels == 1) return;
  uint8_t* const pixels = image.pixels;
  const int64_t area = image.area();
  const auto by = static_cast<float>(factor);
  kernels::call_at_widest([=]() STOKER_INLINED { saturate_body(pixels, area, by); });
}

void to_grayscale(const PixelImage& image) {
  if (image.channels == 1) return;
  for (int64_t i = 0; i < image.area(); ++i) {
    uint8_t* const pixel = image.pixels + 3 * i;
    const uint8_t gray = luma(pixel[0], pixel[1], pixel[2]);
    for (int c = 0; c < 3; ++c) pixel[c] = gray;
  }
}

void posterize(const PixelImage& image, int bits) {
  const auto mask = static_cast<uint8_t>(0xFF << (8 - bits));
  uint8_t* const pixels = image.pixels;
  const int64_t bytes = image.bytes();
  for (int64_t i = 0; i < bytes; ++i) pixels[i] &= mask;
}

void solarize(const PixelImage& image, double threshold) {
  ByteTable table;
  for (size_t v = 0; v < 256; ++v) {
    table[v] = static_cast<uint8_t>(static_cast<double>(v) < threshold ? v : 255 - v);
  }
  look_up(image, table);
}

void stretch_contrast(const PixelImage& image) {
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

void equalize_histogram(const PixelImage& image) {
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

// Pillow converts between RGB and HSV in floats that it rounds to bytes. Whatever depends on two bytes only
// is a table here. Compiled without fused multiply-add (see CMakeLists.txt): the same bits on every machine.

namespace {

/// Which channels are largest and middle; the hue is kBase + kSign x (max - middle) / (max - min) sixths.
constexpr int kSectors = 6;
constexpr double kSectorBase[kSectors] = {1, 1, 3, 3, 5, -1};  // rg, gr, gb, bg, br, rb
constexpr double kSectorSign[kSectors] = {-1, 1, -1, 1, -1, 1};

/// Where the entry of a quotient part / whole, 0 <= part <= whole < 256, lies in a triangular table.
size_t triangle(int part, int whole) { return static_cast<size_t>(whole * (whole + 1) / 2 + part); }

struct HsvTables {
  HsvTables();
  std::array<std::vector<uint8_t>, kSectors> hue;   // [triangle(max - middle, max - min)]
  std::vector<uint8_t> saturation;                  // [triangle(max - min, max)]
  std::array<std::array<uint8_t, 256>, 256> floor;  // [saturation][value]: the smallest of red, green, blue
  std::array<float, 256> strength;                  // of a saturation byte, 0 to 1
  std::array<uint8_t, 256> sextant;                 // of a hue byte, 0 to 5
  std::array<float, 256> rest;                      // of a hue byte within its sextant, 0 to 1
};

HsvTables::HsvTables() {
  for (auto& table : hue) table.resize(triangle(255, 255) + 1);
  saturation.resize(triangle(255, 255) + 1);
  for (int whole = 1; whole < 256; ++whole) {
    for (int part = 0; part <= whole; ++part) {
      const float quotient = static_cast<float>(part) / static_cast<float>(whole);
      saturation[triangle(part, whole)] = static_cast<uint8_t>(quotient * 255.0);
      for (size_t s = 0; s < kSectors; ++s) {
        const auto sixths = static_cast<float>(kSectorBase[s] + kSectorSign[s] * quotient);
        const double turns = sixths / 6.0 + 1.0;
        const auto turn = static_cast<float>(turns - std::floor(turns));
        hue[s][triangle(part, whole)] = static_cast<uint8_t>(turn * 255.0);
      }
    }
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    strength[byte] = static_cast<float>(static_cast<double>(byte) / 255.0);
    const double sixths = static_cast<double>(byte) * 6.0 / 255.0;
    sextant[byte] = static_cast<uint8_t>(static_cast<int>(sixths) % kSectors);
    rest[byte] = static_cast<float>(sixths - std::floor(sixths));
    for (size_t value = 0; value < 256; ++value) {
      floor[byte][value] =
          static_cast<uint8_t>(std::lround(static_cast<double>(value) * (1.0 - static_cast<double>(strength[byte]))));
    }
  }
}

const HsvTables& hsv_tables() {
  static const HsvTables tables;
  return tables;
}

/// value x (1 - share), halves up.
inline uint8_t dimmed(int value, double share) {
  return static_cast<uint8_t>(static_cast<int>(value * (1.0 - share) + 0.5));
}

/// Sorts a pixel's channels; ties as Pillow has them: red before green before blue.
struct SortedPixel {
  int sector, largest, middle, smallest;
};

inline SortedPixel sorted_pixel(int red, int green, int blue) {
  if (red >= green && red >= blue) {
    return green >= blue ? SortedPixel{0, red, green, blue} : SortedPixel{5, red, blue, green};
  }
  if (green >= blue) return red >= blue ? SortedPixel{1, green, red, blue} : SortedPixel{2, green, blue, red};
  return red >= green ? SortedPixel{4, blue, red, green} : SortedPixel{3, blue, green, red};
}

}  // namespace

void adjust_hue(const PixelImage& image, double turn) {
  if (image.channels == 1) return;
  // Which channel gets the largest value, the middle one and the smallest one in each sextant.
  constexpr int kLargest[] = {0, 1, 1, 2, 2, 0}, kMiddle[] = {1, 0, 2, 1, 0, 2}, kSmallest[] = {2, 2, 0, 0, 1, 1};
  const HsvTables& tables = hsv_tables();
  const int step = static_cast<int>(turn * 255);  // towards 0
  for (int64_t i = 0; i < image.area(); ++i) {
    uint8_t* const pixel = image.pixels + 3 * i;
    const SortedPixel p = sorted_pixel(pixel[0], pixel[1], pixel[2]);
    if (p.largest == p.smallest) continue;  // gray has no hue
    const int range = p.largest - p.smallest;
    const uint8_t saturation = tables.saturation[triangle(range, p.largest)];
    const uint8_t hue =
        static_cast<uint8_t>(tables.hue[static_cast<size_t>(p.sector)][triangle(p.largest - p.middle, range)] + step);
    const int sextant = tables.sextant[hue];
    const float strength = tables.strength[saturation], rest = tables.rest[hue];
    const double share = sextant % 2 == 1 ? static_cast<double>(strength * rest)
                                          : static_cast<double>(strength) * (1.0 - static_cast<double>(rest));
    pixel[kLargest[sextant]] = static_cast<uint8_t>(p.largest);
    pixel[kMiddle[sextant]] = dimmed(p.largest, share);
    pixel[kSmallest[sextant]] = tables.floor[saturation][static_cast<size_t>(p.largest)];
  }
}

}  // namespace stoker::data
