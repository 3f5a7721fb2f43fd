// SPDX-License-Identifier: Apache-2.0
#include "data/image/pixels/image_buffer.h"

#include <algorithm>
#include <cstring>

namespace stoker::data {
namespace {

template <int samples, int channels, bool is_bgr>
void convert_pixels(const uint8_t* in, int64_t width, bool use_alpha, uint8_t* out) {
  constexpr bool is_gray = samples < 3, has_alpha = samples % 2 == 0;
  for (int64_t x = 0; x < width; ++x, in += samples, out += channels) {
    uint32_t rgb[3];
    for (int c = 0; c < 3; ++c) rgb[c] = in[is_gray ? 0 : is_bgr ? 2 - c : c];
    if (has_alpha && use_alpha) {
      for (uint32_t& value : rgb) value = (value * in[samples - 1] + 127) / 255;
    }
    if (channels == 3) {
      for (int c = 0; c < 3; ++c) out[c] = static_cast<uint8_t>(rgb[c]);
    } else {
      out[0] = is_gray ? static_cast<uint8_t>(rgb[0]) : luma(rgb[0], rgb[1], rgb[2]);
    }
  }
}

/// Numbers of channels known at compile time make one loop without choices.
template <int channels, bool is_bgr>
void convert_samples(const uint8_t* in, int64_t width, int samples, bool use_alpha, uint8_t* out) {
  switch (samples) {
    case 1: return convert_pixels<1, channels, is_bgr>(in, width, use_alpha, out);
    case 2: return convert_pixels<2, channels, is_bgr>(in, width, use_alpha, out);
    case 3: return convert_pixels<3, channels, is_bgr>(in, width, use_alpha, out);
    default: return convert_pixels<4, channels, is_bgr>(in, width, use_alpha, out);
  }
}

}  // namespace

void convert_row(const uint8_t* in, int64_t width, int samples, bool use_alpha, int channels, uint8_t* out) {
  (channels == 1 ? convert_samples<1, false> : convert_samples<3, false>)(in, width, samples, use_alpha, out);
}

void convert_bgr_row(const uint8_t* in, int64_t width, int samples, bool use_alpha, int channels, uint8_t* out) {
  (channels == 1 ? convert_samples<1, true> : convert_samples<3, true>)(in, width, samples, use_alpha, out);
}

void EightBits::row_of_16(const uint8_t* in, int64_t count, uint8_t* out) const {
  const bool is_whole = low_ == 0 && span_ == 65535 && seen_ == nullptr;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t value = 0;
    std::memcpy(&value, in + 2 * i, sizeof value);
    out[i] = is_whole ? static_cast<uint8_t>((value + 128u) / 257u) : of(value);
  }
}

void convert_channels(const uint8_t* pixels, int64_t count, int from, int to, std::vector<uint8_t>& out) {
  const auto needed = static_cast<size_t>(count * to);
  if (out.size() < needed) out.resize(needed);
  if (from == to) {
    std::copy(pixels, pixels + count * from, out.begin());
  } else if (to == 3) {
    for (int64_t i = 0; i < count; ++i) std::fill_n(out.data() + 3 * i, 3, pixels[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      out[static_cast<size_t>(i)] = luma(pixels[3 * i], pixels[3 * i + 1], pixels[3 * i + 2]);
    }
  }
}

}  // namespace stoker::data
