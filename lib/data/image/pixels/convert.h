// SPDX-License-Identifier: Apache-2.0
// Changes of the meaning or order of 8-bit pixels.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "data/image/pixels/image_buffer.h"

namespace stoker::data {

/// ITU-R BT.601 luma, rounded, in 16-bit fixed point.
inline uint8_t luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

/// One row of samples of 8 bits: gray (1), gray and alpha (2), RGB (3), RGB and alpha (4), to `channels` (1 or 3).
/// Alpha goes over black, or is left out.
void convert_row(const uint8_t* in, int64_t width, int samples, bool use_alpha, int channels, uint8_t* out);
/// The same of samples as OpenCV orders them: BGR.
void convert_bgr_row(const uint8_t* in, int64_t width, int samples, bool use_alpha, int channels, uint8_t* out);
/// Inks to RGB: 255 is full ink.
inline void inks_to_rgb(const uint8_t* inks, uint8_t* rgb) {
  const uint32_t light = 255u - inks[3];
  for (int i = 0; i < 3; ++i) rgb[i] = static_cast<uint8_t>(((255u - inks[i]) * light + 127) / 255);
}

/// Numbers of a wide kind to 8 bits: `low` and less is black, `high` and more white, rounded to even between.
class EightBits {
 public:
  EightBits(const ValueRange& given, double low, double high, SeenValues* seen = nullptr)
      : low_(given.is_set() ? given.low : low),
        span_(given.is_set() ? given.high - given.low : high - low),
        seen_(seen) {
    if (seen != nullptr) seen->low = low, seen->high = high;
  }
  uint8_t of(double value) const {
    if (seen_ != nullptr) seen_->add(value);
    const double scaled = (value - low_) / span_ * 255;
    return scaled >= 255 ? 255 : scaled > 0 ? static_cast<uint8_t>(std::nearbyint(scaled)) : 0;
  }
  /// Of 16-bit numbers in this machine's order of bytes.
  void row_of_16(const uint8_t* in, int64_t count, uint8_t* out) const;

 private:
  double low_, span_;
  SeenValues* seen_;
};

/// Packed pixels of `from` channels (1 or 3) into `out` with `to` channels (1 or 3): gray repeats, RGB
/// becomes luma.
void convert_channels(const uint8_t* pixels, int64_t count, int from, int to, std::vector<uint8_t>& out);

}  // namespace stoker::data
