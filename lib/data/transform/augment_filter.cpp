// SPDX-License-Identifier: Apache-2.0
#include "data/transform/augment_filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/transform/augment_colour.h"
#include "kernels/cpu.h"

namespace stoker::data {
namespace {

constexpr int kBlurBits = 16;
constexpr uint32_t kBlurOne = 1 << kBlurBits;

/// One output row of the 3x3 kernel 1 1 1, 1 5 1, 1 1 1 over 13, without its first and last pixel.
void smooth_row(const uint8_t* above, const uint8_t* row, const uint8_t* below, int64_t bytes, int channels,
                uint8_t* out) {
  for (int64_t i = channels; i < bytes - channels; ++i) {
    const int64_t l = i - channels, r = i + channels;
    const uint32_t sum =
        uint32_t{above[l]} + above[i] + above[r] + row[l] + 5 * row[i] + row[r] + below[l] + below[i] + below[r];
    out[i] = static_cast<uint8_t>((2 * sum + 13) / 26);  // a tie cannot be: 13 is odd
  }
}

/// Weights in 1/65536 of the centre and of each distance that has any; together exactly 1.
void blur_weights(int kernel, double sigma, std::vector<uint32_t>& weights) {
  const int reach = kernel / 2;
  double sum = 1;
  for (int k = 1; k <= reach; ++k) sum += 2 * std::exp(-0.5 * k * k / (sigma * sigma));
  weights.assign(1, 0);
  uint32_t others = 0;
  for (int k = 1; k <= reach; ++k) {
    const double share = std::exp(-0.5 * k * k / (sigma * sigma)) / sum;
    const auto weight = static_cast<uint32_t>(std::nearbyint(share * kBlurOne));
    if (weight == 0) break;
    weights.push_back(weight);
    others += 2 * weight;
  }
  weights[0] = kBlurOne - others;
}

inline __attribute__((always_inline)) void narrow_body(const uint8_t* row, const std::vector<uint32_t>& weights,
                                                       int64_t bytes, int channels, uint16_t* out) {
  const auto reach = static_cast<int64_t>(weights.size()) - 1;
  constexpr int64_t kBlock = 64;
  for (int64_t start = 0; start < bytes; start += kBlock) {
    const int64_t n = std::min(kBlock, bytes - start);
    uint32_t sums[kBlock];
    for (int64_t i = 0; i < n; ++i) sums[i] = row[start + i] * weights[0];
    for (int64_t k = 1; k <= reach; ++k) {
      const uint8_t* const before = row + start - k * channels;
      const uint8_t* const after = row + start + k * channels;
      const uint32_t weight = weights[static_cast<size_t>(k)];
      for (int64_t i = 0; i < n; ++i) sums[i] += (uint32_t{before[i]} + after[i]) * weight;
    }
    for (int64_t i = 0; i < n; ++i) out[start + i] = static_cast<uint16_t>((sums[i] + 128) >> 8);
  }
}

/// `rows[k]` and `rows[-k]` are k rows below and above.
inline __attribute__((always_inline)) void merge_body(const uint16_t* const* rows, const std::vector<uint32_t>& weights,
                                                      int64_t bytes, uint8_t* out) {
  const auto reach = static_cast<int64_t>(weights.size()) - 1;
  constexpr int64_t kBlock = 64;
  for (int64_t start = 0; start < bytes; start += kBlock) {
    const int64_t n = std::min(kBlock, bytes - start);
    uint32_t sums[kBlock];
    for (int64_t i = 0; i < n; ++i) sums[i] = rows[0][start + i] * weights[0] + (1 << 23);
    for (int64_t k = 1; k <= reach; ++k) {
      const uint16_t* const above = rows[-k] + start;
      const uint16_t* const below = rows[k] + start;
      const uint32_t weight = weights[static_cast<size_t>(k)];
      for (int64_t i = 0; i < n; ++i) sums[i] += (uint32_t{above[i]} + below[i]) * weight;
    }
    for (int64_t i = 0; i < n; ++i) out[start + i] = static_cast<uint8_t>(sums[i] >> 24);
  }
}

/// Index i outside [0, side) mirrored at the first or the last one, which is not repeated.
int mirrored(int i, int side) {
  if (side == 1) return 0;
  return i < 0 ? -i : i >= side ? 2 * (side - 1) - i : i;
}

/// One row with `reach` mirrored pixels on each side.
void pad_row(const uint8_t* row, const PixelImage& image, int reach, uint8_t* out) {
  const int channels = image.channels;
  std::memcpy(out + int64_t{reach} * channels, row, static_cast<size_t>(image.row_bytes()));
  for (int k = 1; k <= reach; ++k) {
    const int before = mirrored(-k, image.width), after = mirrored(image.width - 1 + k, image.width);
    std::memcpy(out + int64_t{reach - k} * channels, row + int64_t{before} * channels, static_cast<size_t>(channels));
    std::memcpy(out + int64_t{reach + image.width - 1 + k} * channels, row + int64_t{after} * channels,
                static_cast<size_t>(channels));
  }
}

/// A bijection that mixes all bits: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators",
/// 2014.
inline uint64_t mixed_bits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

void adjust_sharpness(const PixelImage& image, double factor, std::vector<uint8_t>& smooth) {
  smooth.assign(image.pixels, image.pixels + image.bytes());  // the border stays as it is
  const int64_t row = image.row_bytes();
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    const uint8_t* const in = image.pixels + y * row;
    smooth_row(in - row, in, in + row, row, image.channels, smooth.data() + y * row);
  }
  blend_bytes(smooth.data(), image.pixels, image.bytes(), factor);
}

void blur(const PixelImage& image, int kernel, double sigma, BlurScratch& scratch) {
  blur_weights(kernel, sigma, scratch.weights);
  const int reach = static_cast<int>(scratch.weights.size()) - 1;
  const int64_t row = image.row_bytes();
  scratch.padded.resize(static_cast<size_t>(row + int64_t{2} * reach * image.channels));
  scratch.narrowed.resize(static_cast<size_t>(image.bytes()));
  const std::vector<uint32_t>* const weights = &scratch.weights;
  const int channels = image.channels;
  for (int64_t y = 0; y < image.height; ++y) {
    pad_row(image.pixels + y * row, image, reach, scratch.padded.data());
    const uint8_t* const padded = scratch.padded.data() + int64_t{reach} * channels;
    uint16_t* const narrowed = scratch.narrowed.data() + y * row;
    kernels::call_at_widest([=]() STOKER_INLINED { narrow_body(padded, *weights, row, channels, narrowed); });
  }
  scratch.rows.resize(static_cast<size_t>(2 * reach + 1));
  for (int y = 0; y < image.height; ++y) {
    for (int k = -reach; k <= reach; ++k) {
      scratch.rows[static_cast<size_t>(k + reach)] = scratch.narrowed.data() + mirrored(y + k, image.height) * row;
    }
    const uint16_t* const* const rows = scratch.rows.data() + reach;
    uint8_t* const out = image.pixels + y * row;
    kernels::call_at_widest([=]() STOKER_INLINED { merge_body(rows, *weights, row, out); });
  }
}

NoiseTable make_noise_table(double sigma) {
  constexpr double kEntries = 65536;
  NoiseTable table;
  table.reserve(65536);
  // Entries below 65536 P(noise < k + 1/2) that are not taken yet stand for k.
  for (int k = -255; k < 255; ++k) {
    const double share = sigma > 0 ? 0.5 * std::erfc(-(k + 0.5) / (255 * sigma * std::sqrt(2.0))) : (k < 0 ? 0 : 1);
    const auto end = static_cast<size_t>(std::nearbyint(share * kEntries));
    while (table.size() < end) table.push_back(static_cast<int16_t>(k));
  }
  table.resize(65536, int16_t{255});
  return table;
}

void add_noise(const PixelImage& image, const NoiseTable& table, uint64_t key) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  const int64_t bytes = image.bytes();
  for (int64_t i = 0; i < bytes; i += 4) {
    uint64_t bits = mixed_bits(key += kStep);
    for (int64_t j = i; j < std::min(i + 4, bytes); ++j, bits >>= 16) {
      image.pixels[j] = static_cast<uint8_t>(std::clamp(image.pixels[j] + table[bits & 0xFFFF], 0, 255));
    }
  }
}

void erase(const PixelImage& image, const PixelBox& box, const std::array<uint8_t, 3>& value) {
  for (int y = box.top; y < box.top + box.height; ++y) {
    uint8_t* out = image.pixels + y * image.row_bytes() + int64_t{box.left} * image.channels;
    for (int x = 0; x < box.width; ++x) {
      for (int c = 0; c < image.channels; ++c) *out++ = value[static_cast<size_t>(c)];
    }
  }
}

}  // namespace stoker::data
